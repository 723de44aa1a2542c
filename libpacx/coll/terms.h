/* terms.h: the order in which a reduction applies its operator, and what each site can compute by itself.
 *
 * Terms are partial results that cross to other sites; each belongs to one rank (its owner), and whoever needs the result has all of them
 * and folds them alike: so all ranks get the same bits.
 *
 * Where the result depends on the grouping (floating-point sums and products, operators of the user) the order is a binary tree over
 * the ranks that knows nothing of sites: the value of ranks [k 2^j, (k+1) 2^j) is that of the lower half op that of the upper half, where
 * there is an upper half. A term is the largest of these subtrees whose ranks are all at one site: one for a site whose ranks are an
 * aligned power of two, otherwise at most two for each bit of their number. The same holds for operators that do not commute, however ranks and sites interleave.
 * Where grouping makes no difference, or the user says that it shall make none (associative), each site has one term, by the vendor's
 * own reduction.
 */
#ifndef PX_TERMS_H
#define PX_TERMS_H

#include "schedule.h"

struct px_fold {
	int a, b; /* term b = term a op term b */
};

struct px_terms {
	int n;
	int *owner; /* [n] comm ranks */
	bool by_site;
	struct px_fold *fold; /* [n - 1], in this order; the result is term n - 1 */
};

/* px_terms_new: of an operation whose heads are those of root (px_coll_head). Lives as long as s. NULL: s has failed. */
struct px_terms *px_terms_new(struct px_sched *s, MPI_Datatype t, MPI_Op op, int root);

/* px_terms_most: how many there are of the site that has most. */
int px_terms_most(const struct px_comm *c, const struct px_terms *x);

/* px_terms_here: steps that compute this site's terms of count elements and bring them to its head: there part[i] is set for them, to memory that may be
 * overwritten. Nothing is waited for. Returns the step after which they are there, or (elsewhere) after which `in` may be overwritten. */
int px_terms_here(struct px_sched *s, const struct px_terms *x, const void *in, MPI_Count count,
	MPI_Datatype t, MPI_Op op, int head, void **part);

/* px_terms_fold: after step `after`, fold part[] and put the result to out. Returns its step. */
int px_terms_fold(struct px_sched *s, const struct px_terms *x, void **part, void *out, MPI_Count count,
	MPI_Datatype t, MPI_Op op, int after);

#endif
