/* study.h: lessons (learn.h) made by worker threads, most of them before the segment is there that needs them.
 *
 * Owned by a path, at its writer and at its reader; both are spared the time alike. When a segment that was predicted by a lesson is done, one
 * of the next of its flow will refer to it, and to those before it at the same distances: that lesson is made ahead. It is of no
 * importance for what is on the wire: a segment with other references has its lesson made when it comes, and waits for it. One lesson
 * at a time, those first that somebody waits for, so that the first segment of many leaves early.
 */
#ifndef PXD_STUDY_H
#define PXD_STUDY_H

#include <uv.h>

#include "history.h"
#include "learn.h"
#include "list.h"

struct pxd_study; /* one lesson: to be made, being made, or there */

struct pxd_studies {
	uv_loop_t *loop;
	uint64_t *events;             /* counted up when a worker is done */
	uint64_t *ns;                 /* the same by its processor time */
	struct pxd_study *busy;       /* with a worker */
	struct px_list wanted, ahead; /* that will be, by when they came */
	struct px_list ready;         /* made ahead and not used yet, the oldest first */
	size_t bytes;                 /* of lessons ahead, made or not, and of the segments they hold */
	int trust;                    /* in lessons ahead: grows as they are used; 0: none is made */
	unsigned lessons;
	bool closed;
};

/* Who needs a lesson, until pxd_study_left. */
struct pxd_student {
	struct px_list l;
	struct pxd_study *study;
	const struct pxd_lesson *lesson; /* set when go is called; NULL: it could not be made */
	void (*go)(struct pxd_student *s);
};

void pxd_studies_init(struct pxd_studies *a, uv_loop_t *loop, uint64_t *events, uint64_t *ns);
/* pxd_studies_close: nothing more is made ahead. */
void pxd_studies_close(struct pxd_studies *a);
/* pxd_studies_fini: when no worker has anything of it, and nobody waits. */
void pxd_studies_fini(struct pxd_studies *a);

/* pxd_study: s needs the lesson of p, which learns, for numbers of `word` bytes; ref: what p->ref names, whose bytes are there. s->go is called
 * when it has it, at once if it is there. 0 or PX_ENOMEM. */
int pxd_study(struct pxd_studies *a, const struct pxd_predictor *p, unsigned word,
	struct pxd_kept *const *ref, struct pxd_student *s);
/* pxd_study_left: s needs it no longer. */
void pxd_study_left(struct pxd_student *s);
/* pxd_study_ahead: segment k, predicted by p from ref, is done: the lesson of the next one like it, for that it refers to k. */
void pxd_study_ahead(struct pxd_studies *a, const struct pxd_predictor *p, unsigned word, struct pxd_kept *k,
	struct pxd_kept *const *ref);

#endif
