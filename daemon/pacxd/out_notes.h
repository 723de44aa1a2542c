/* out_notes.h: small frames from the out-daemon back to the ranks of its site, as native messages.
 *
 * Owned by out_flow. CREDIT, FIN and RATE are notes. A PULL of a message that its rank has not begun is an ask: it is synchronous, so that a rank
 * that does not look has no more of them under way to it than each remote rank may have asked for. Those of messages that have left do not count: a rank
 * may begin any number by itself before it takes what it was asked. Never waits.
 */
#ifndef PXD_OUT_NOTES_H
#define PXD_OUT_NOTES_H

#include <stdbool.h>

#include "frame.h"
#include "list.h"
#include "map.h"

struct pxd;
struct pxd_path;

struct pxd_notes {
	struct pxd *d;
	struct px_list notes, asks; /* under way */
	struct px_map *asked;       /* src, msg -> struct ask */
	struct px_map *gone;        /* src, msg of long messages that have left -> anything */
	uint64_t *gone_key;         /* [PXD_NOTES_GONE] those, in a ring */
	unsigned ngone;             /* that have left in all */
	unsigned *nasks, most;      /* [local ranks] how many, and how many there may be */
	bool *fin;                  /* [local ranks] the rank has finished: it takes no notes any more */
	double *told;               /* [sites] bytes/s that the ranks know of */
	unsigned looks;             /* pxd_notes_rates: calls since the last look at the clock */
	uint64_t looked;            /* px_now_ns of the last look at the rates */
};

int pxd_notes_init(struct pxd_notes *o, struct pxd *d); /* 0 or PX_ENOMEM */
void pxd_notes_fini(struct pxd_notes *o); /* at the end of the process, when nothing native is under way */
/* pxd_notes_put: a frame without body to a local rank, unless it has finished. */
void pxd_notes_put(struct pxd_notes *o, const struct px_frame *f, int rank);
#define PXD_NOTES_GONE                                                                                       \
	4096u /* more long messages than retained segments and a way there and back hold; those before them may be asked for */
/* pxd_notes_gone: all of a long message has left. */
void pxd_notes_gone(struct pxd_notes *o, uint32_t src, uint32_t msg);
/* pxd_notes_ask: tell local rank that message f is wanted. false: more are on their way to it than can be right. */
bool pxd_notes_ask(struct pxd_notes *o, const struct px_frame *f, int rank);
/* pxd_notes_rates: now and then: tell the ranks what full links have been seen to carry, if that is news (px_cost_news) and nothing else is on its way
 * to them. path: [sites], of this gateway. */
void pxd_notes_rates(struct pxd_notes *o, const struct pxd_path *path);
/* pxd_notes_poll: true when something happened. */
bool pxd_notes_poll(struct pxd_notes *o);
static inline bool pxd_notes_empty(const struct pxd_notes *o)
{
	return px_list_empty(&o->notes) && px_list_empty(&o->asks);
}

#endif
