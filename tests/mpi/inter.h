/*
 * inter.h - for programs on intercommunicators: pairs of groups of MPI_COMM_WORLD, in several ways.
 */
#ifndef INTER_H
#define INTER_H

#include "check.h"

/* One intercommunicator and what must be true of it. */
struct pair {
	MPI_Comm local, inter;
	int side;           /* of this rank: 0 or 1 */
	int n[2];           /* sizes */
	int world[2][1024]; /* rank in group -> rank in MPI_COMM_WORLD */
	int me;             /* rank in the local group */
};

#define INTER_WAYS 4 /* halves; even and odd; the first and the rest; the last, and the rest backwards */

static int inter_side(int way, int r)
{
	switch (way) {
	case 0:
		return r >= chk_size / 2;
	case 1:
		return r % 2;
	case 2:
		return r > 0;
	default:
		return r < chk_size - 1;
	}
}

static CHK_MAYBE void inter_make(struct pair *p, int way)
{
	int backwards = way == 3;

	p->n[0] = p->n[1] = 0;
	for (int i = 0; i < chk_size; i++) {
		int r = backwards ? chk_size - 1 - i : i, s = inter_side(way, r);

		if (r == chk_rank) {
			p->side = s;
			p->me = p->n[s];
		}
		p->world[s][p->n[s]++] = r;
	}
	MPI_Comm_split(MPI_COMM_WORLD, p->side, backwards ? -chk_rank : chk_rank, &p->local);
	/* the leaders are the last of each group */
	MPI_Intercomm_create(p->local, p->n[p->side] - 1, MPI_COMM_WORLD,
		p->world[!p->side][p->n[!p->side] - 1], 70 + way, &p->inter);
}

static CHK_MAYBE void inter_free(struct pair *p)
{
	MPI_Comm_free(&p->inter);
	MPI_Comm_free(&p->local);
}

#endif
