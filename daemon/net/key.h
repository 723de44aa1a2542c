/* key.h: the job's key: made by pacxrun, or read from a file that only its owner can read.
 *
 * 32 random bytes; as text 64 hexadecimal digits and a newline. Never logged, never on a command line; wiped after use.
 * PACX_KEY in the environment of a site's processes holds the text, PACX_KEY_FILE names a file.
 */
#ifndef PXD_KEY_H
#define PXD_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "preamble.h"

#define PXD_KEY_SIZE 32
#define PXD_KEY_TEXT (2 * PXD_KEY_SIZE + 1) /* with NUL */

struct pxd_hosts;

int pxd_key_make(uint8_t key[PXD_KEY_SIZE]); /* 0 or PX_EIO */
void pxd_key_wipe(void *p, size_t n);
void pxd_key_text(const uint8_t key[PXD_KEY_SIZE], char text[PXD_KEY_TEXT]);
/* pxd_key_parse: surrounding white space is allowed. 0 or PX_EINVAL. */
int pxd_key_parse(const char *text, uint8_t key[PXD_KEY_SIZE]);
/* pxd_key_path: no shell has seen the path in a hostfile: "~/..." made full in `full`, or path itself. */
const char *pxd_key_path(const char *path, char *full, size_t cap);
/* pxd_key_load: refuses a file that others than its owner (who is we, or root) may read or write. 0 or PX_ECONF with the reason
 * and what to do ("chmod 600 FILE") in why. */
int pxd_key_load(const char *path, uint8_t key[PXD_KEY_SIZE], char *why, size_t cap);
/* pxd_key_take: the key of this process: from PACX_KEY (then wiped from the environment), PACX_KEY_FILE, or the site's
 * `key:`. 0, or PX_ECONF: none found, with what to do in why. */
int pxd_key_take(const struct pxd_hosts *h, int self, uint8_t key[PXD_KEY_SIZE], char *why, size_t cap);
/* pxd_key_derive: HKDF-SHA256 of the key: another one for the purpose `info` that does not tell of it. 0 or PX_EIO. */
int pxd_key_derive(const uint8_t key[PXD_KEY_SIZE], const uint8_t *salt, size_t nsalt, const char *info,
	uint8_t out[PXD_KEY_SIZE]);
void pxd_jobhash(const char *job_id, uint8_t hash[PX_JOBHASH_SIZE]);

#endif
