/* link.c: see link.h. */
#include "link.h"

#include "conn.h"
#include "err.h"

static void header_make(struct pxd_path *p, const struct px_frame *f, uint8_t *head)
{
	struct px_frame g = *f;

	g.seq = ++p->seq;
	g.local = 0; /* a native tag means nothing elsewhere */
	px_frame_put(&g, head);
	p->count.frames++;
	p->count.wire_bytes += PX_FRAME_SIZE + g.body;
	if (g.type == PX_F_MSG) {
		p->count.messages++;
		p->count.payload_bytes += g.total;
	}
}

int pxd_path_put(struct pxd_path *p, const struct px_frame *f, const uint8_t *body)
{
	uint8_t head[PX_FRAME_SIZE];

	header_make(p, f, head);
	return pxd_conn_put(p->conn, head, sizeof head, body, (size_t)f->body);
}

int pxd_path_put_seg(struct pxd_path *p, const struct px_frame *f, struct pxd_seg *seg)
{
	uint8_t head[PX_FRAME_SIZE];

	header_make(p, f, head);
	if (pxd_conn_put(p->conn, head, sizeof head, NULL, 0) < 0) {
		pxd_seg_put(seg);
		return PX_ENOMEM;
	}
	return pxd_conn_put_seg(p->conn, seg);
}

int pxd_path_flush(struct pxd_path *p)
{
	if (!p->conn)
		return 0;
	return pxd_conn_flush(p->conn);
}

bool pxd_path_open_to(struct pxd_path *p)
{
	if (!p->conn)
		return false;
	if (p->conn->queued > PXD_LINK_HIGH)
		p->stopped = true;
	else if (p->conn->queued < PXD_LINK_LOW)
		p->stopped = false;
	return !p->stopped;
}

int pxd_path_bye(struct pxd_path *p)
{
	struct px_frame f = { .version = PX_PROTOCOL_VERSION, .type = PX_F_BYE };
	int rc = pxd_path_put(p, &f, NULL);

	p->state = PXD_LINK_BYE;
	if (rc == 0)
		pxd_conn_end(p->conn);
	return rc;
}

void pxd_path_close(struct pxd_path *p)
{
	if (p->conn) {
		p->peak = p->conn->peak;
		p->writes = p->conn->writes;
		pxd_conn_close(p->conn);
	}
	p->conn = NULL;
	p->state = PXD_LINK_GONE;
}
