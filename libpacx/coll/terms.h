/* terms.h: the order in which a reduction applies its operator, and what each site can compute by itself.
 *
 * Terms are partial results that cross to other sites, those of a site in one message; whoever needs the result has all of them
 * and folds them alike: so all ranks get the same bits.
 *
 * Where the result depends on the grouping (floating-point sums and products, operators of the user) the order is a binary tree over
 * the ranks that knows nothing of sites: the value of n > 1 consecutive ranks is that of the first half op that of the second; of an odd
 * number the first half has one more. A term is the largest of these subtrees whose ranks are all at one site: one for each site where 2, 4, 8, ...
 * sites share the ranks evenly, otherwise a few (twice the logarithm of their number at most). The same holds for operators that do not commute, however
 * ranks and sites interleave.
 * Where grouping makes no difference, or the user says that it shall make none (associative), each site has one term, by the vendor's
 * own reduction.
 * Where sites are in groups (groups.h), the head of a group has the terms of its sites and does first what can be done with them alone; what is left
 * crosses to other groups.
 */
#ifndef PX_TERMS_H
#define PX_TERMS_H

#include "schedule.h"

struct px_term {
	int lo, n; /* the value of comm ranks [lo, lo + n); it is made by lo */
};

struct px_fold {
	int a, b;   /* term b = term a op term b */
	int inside; /* both are of this group (its head); -1: of several */
};

/* Who has which terms: [first[p]] to [first[p + 1] - 1] of `of` are those of p. */
struct px_shares {
	int *of, *first;
};

/* Made once for a communicator, which owns it: one block on the heap. */
struct px_terms {
	int n;
	bool by_site;           /* term p is that of site p */
	int most;               /* of the group that has most left */
	struct px_term *term;   /* [n], unless by_site */
	struct px_fold *fold;   /* [n - 1], in this order; the result is term n - 1 */
	struct px_shares site;  /* of each site */
	struct px_shares group; /* of each group, by its head: those that are left when its folds are done */
};

/* px_terms_of: those of an operation. NULL: s has failed. */
const struct px_terms *px_terms_of(struct px_sched *s, MPI_Datatype t, MPI_Op op);
/* px_terms_tree: those of the tree, whatever the operation. */
const struct px_terms *px_terms_tree(struct px_sched *s);

/* px_terms_left: how many of n ranks are the first half. */
static inline int px_terms_left(int n)
{
	return (n + 1) / 2;
}

/* px_terms_here: steps that compute this site's terms of count elements and bring them to its head: there part[i] is set for them, to memory that may be
 * overwritten. alone: the head does all the work, which others do for other parts of a vector. Nothing is waited for. Returns the step after which
 * they are there, or (elsewhere) after which `in` may be overwritten. */
int px_terms_here(struct px_sched *s, const struct px_terms *x, const void *in, MPI_Count count,
	MPI_Datatype t, MPI_Op op, int head, bool alone, void **part);

/* Elements of a vector. */
struct px_range {
	MPI_Count first, count;
};

/* What one message carries: this site's terms, of each the same elements. */
struct px_bundle {
	void *buf;
	MPI_Count count;
	int ready; /* the step after which it may be sent */
};

/* px_terms_bundle: our share of them (of x), the n ranges, after step `after`. The ranges must live as long as s. */
struct px_bundle px_terms_bundle(struct px_sched *s, const struct px_shares *x, int share, void **part,
	const struct px_range *range, int n, MPI_Datatype t, int after);

/* px_terms_take: receive such a bundle, of count elements each, to part[]. Returns its step. */
int px_terms_take(struct px_sched *s, const struct px_shares *x, int share, void **part, MPI_Count count,
	MPI_Datatype t, int from);

/* px_terms_fold: after step `after`, do all folds and put the result to out; rest: those inside groups are done. Returns its step.
 * px_terms_fold_inside: only those of a group. */
int px_terms_fold(struct px_sched *s, const struct px_terms *x, bool rest, void **part, void *out,
	MPI_Count count, MPI_Datatype t, MPI_Op op, int after);
int px_terms_fold_inside(struct px_sched *s, const struct px_terms *x, int group, void **part,
	MPI_Count count, MPI_Datatype t, MPI_Op op, int after);

#endif
