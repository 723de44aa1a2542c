/* key.c: see key.h. */
#include "key.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "hostfile.h"

#define FILE_MAX 256 /* a key file is shorter, with white space and all */

int pxd_key_make(uint8_t key[PXD_KEY_SIZE])
{
	size_t done = 0;

	while (done < PXD_KEY_SIZE) {
		ssize_t n = getrandom(key + done, PXD_KEY_SIZE - done, 0);

		if (n < 0 && errno != EINTR)
			return PX_EIO;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

void pxd_key_wipe(void *p, size_t n)
{
	OPENSSL_cleanse(p, n);
}

void pxd_key_text(const uint8_t key[PXD_KEY_SIZE], char text[PXD_KEY_TEXT])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < PXD_KEY_SIZE; i++) {
		text[2 * i] = digits[key[i] >> 4];
		text[2 * i + 1] = digits[key[i] & 15];
	}
	text[2 * PXD_KEY_SIZE] = '\0';
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int pxd_key_parse(const char *text, uint8_t key[PXD_KEY_SIZE])
{
	uint8_t k[PXD_KEY_SIZE];
	int rc = PX_EINVAL;

	while (isspace((unsigned char)*text))
		text++;
	for (int i = 0; i < PXD_KEY_SIZE; i++, text += 2) {
		int high = digit(text[0]), low = high < 0 ? -1 : digit(text[1]);

		if (low < 0)
			goto done;
		k[i] = (uint8_t)(high << 4 | low);
	}
	while (isspace((unsigned char)*text))
		text++;
	if (*text)
		goto done;
	memcpy(key, k, sizeof k);
	rc = 0;
done:
	pxd_key_wipe(k, sizeof k);
	return rc;
}

const char *pxd_key_path(const char *path, char *full, size_t cap)
{
	const char *home = getenv("HOME");

	if (path[0] != '~' || path[1] != '/' || !home || !*home)
		return path;
	return snprintf(full, cap, "%s%s", home, path + 1) < (int)cap ? full : path;
}

int pxd_key_load(const char *path, uint8_t key[PXD_KEY_SIZE], char *why, size_t cap)
{
	char text[FILE_MAX + 1], full[PATH_MAX];
	int fd = -1, rc = PX_ECONF;
	struct stat st;
	ssize_t n;

	path = pxd_key_path(path, full, sizeof full);
	/* O_NONBLOCK: a FIFO must not hold us up until somebody writes to it. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0) {
		snprintf(why, cap, "key file '%s': %s", path, strerror(errno));
		goto done;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, cap, "key file '%s' is not a regular file", path);
		goto done;
	}
	if (st.st_uid != geteuid() && st.st_uid != 0) {
		snprintf(why, cap,
			"key file '%s' belongs to user %lu, who could change it; use a copy of your own",
			path, (unsigned long)st.st_uid);
		goto done;
	}
	if (st.st_mode & 077) {
		snprintf(why, cap,
			"key file '%s' has mode %03o: others than its owner may use it; chmod 600 '%s'", path,
			(unsigned)(st.st_mode & 0777), path);
		goto done;
	}
	n = read(fd, text, FILE_MAX);
	if (n < 0) {
		snprintf(why, cap, "key file '%s': %s", path, strerror(errno));
		goto done;
	}
	text[n] = '\0';
	/* A NUL byte would end the text before its time. */
	if (strlen(text) == (size_t)n && n < FILE_MAX && pxd_key_parse(text, key) == 0)
		rc = 0;
	else
		snprintf(why, cap,
			"key file '%s' does not hold a key of 64 hexadecimal digits; make one with: "
			"pacxctl keygen FILE",
			path);
	pxd_key_wipe(text, sizeof text);
done:
	if (fd >= 0)
		close(fd);
	return rc;
}

/* key_from_env: also wipes the variable where it stands, which /proc/PID/environ shows. */
static int key_from_env(char *text, uint8_t key[PXD_KEY_SIZE])
{
	int rc = pxd_key_parse(text, key);

	pxd_key_wipe(text, strlen(text));
	unsetenv("PACX_KEY");
	return rc;
}

int pxd_key_take(const struct pxd_hosts *h, int self, uint8_t key[PXD_KEY_SIZE], char *why, size_t cap)
{
	char *text = getenv("PACX_KEY");
	const char *file = getenv("PACX_KEY_FILE");
	const struct pxd_site *s = self >= 0 && self < h->nsites ? &h->sites[self] : NULL;

	if (text && *text) {
		if (key_from_env(text, key) == 0)
			return 0;
		snprintf(why, cap, "PACX_KEY does not hold a key of 64 hexadecimal digits");
		return PX_ECONF;
	}
	if (!file || !*file)
		file = s ? s->key : NULL;
	if (file)
		return pxd_key_load(file, key, why, cap);
	snprintf(why, cap,
		"site '%s' has no key for its links: neither PACX_KEY nor PACX_KEY_FILE is set, and the "
		"hostfile "
		"names no key: for it; make one with: pacxctl keygen FILE, copy it to each site with mode "
		"600, "
		"name it with key: (or write security: none)",
		s ? s->name : "?");
	return PX_ECONF;
}

int pxd_key_derive(const uint8_t key[PXD_KEY_SIZE], const uint8_t *salt, size_t nsalt, const char *info,
	uint8_t out[PXD_KEY_SIZE])
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *k = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	OSSL_PARAM params[5], *p = params;
	int rc;

	*p++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char[]){ "SHA256" }, 0);
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)key, PXD_KEY_SIZE);
	if (nsalt > 0)
		*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)(uintptr_t)salt, nsalt);
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)info, strlen(info));
	*p = OSSL_PARAM_construct_end();
	rc = k && EVP_KDF_derive(k, out, PXD_KEY_SIZE, params) == 1 ? 0 : PX_EIO;
	EVP_KDF_CTX_free(k); /* wipes its copy */
	EVP_KDF_free(kdf);
	return rc;
}

void pxd_jobhash(const char *job_id, uint8_t hash[PX_JOBHASH_SIZE])
{
	uint8_t all[EVP_MAX_MD_SIZE];

	memset(all, 0, sizeof all);
	EVP_Digest(job_id, strlen(job_id), all, NULL, EVP_sha256(), NULL);
	memcpy(hash, all, PX_JOBHASH_SIZE);
}
