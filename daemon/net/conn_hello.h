/* conn_hello.h: the handshake's bytes: one HELLO or REFUSE frame each way, in bounded memory.
 *
 * Used by the dialling side (conn_dial.c) and the listening side (listen.c). A struct pxd_hand collects
 * what an unknown peer sends, never more than one frame of a hello. Knows no sockets beyond pxd_conn_say.
 */
#ifndef PXD_CONN_HELLO_H
#define PXD_CONN_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "frame.h"
#include "hello.h"
#include "preamble.h"

#define PXD_HAND_MS  10000 /* from the connection to the accepted hello */
#define PXD_HAND_MAX (PX_FRAME_SIZE + PX_HELLO_MAX)
#define PXD_REASON   512 /* longest reason sent or shown, with its NUL */

struct pxd_node;
struct pxd_conn;

struct pxd_hand {
	uint8_t buf[PXD_HAND_MAX];
	size_t n;
};

/* pxd_hand_get: what has arrived. 0: a frame, HELLO (in *hello) or REFUSE (in reason, fit for a log); *type
 * says which. PX_ESHORT: more is needed. PX_EVERSION, PX_EPROTO, PX_EIO (its checksum is wrong), with a sentence in reason. */
int pxd_hand_get(const struct pxd_hand *h, int *type, struct px_hello *hello, char *reason);
/* pxd_hand_want: how many bytes to read at most next: none that belong to what follows the frame. */
size_t pxd_hand_want(const struct pxd_hand *h);
/* pxd_hand_judge: does the peer's hello fit us, the preamble, and what the role knows? 0 or PX_E... with a reason. */
int pxd_hand_judge(struct pxd_node *d, struct pxd_conn *c, const struct px_preamble *p,
	const struct px_hello *hello, char *why, size_t cap);
/* pxd_hand_put_hello, pxd_hand_put_refuse: send the frame. 0, PX_E... */
int pxd_hand_put_hello(struct pxd_node *d, struct pxd_conn *c, const struct px_preamble *p);
int pxd_hand_put_refuse(struct pxd_conn *c, const char *reason);
/* pxd_hand_options: congestion control and emulation of the link, on an accepted connection. */
void pxd_hand_options(struct pxd_node *d, struct pxd_conn *c, const struct px_preamble *p);

#endif
