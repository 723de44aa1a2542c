/*
 * operators.h - operators of a program's own: one that commutes, and one that does not.
 */
#ifndef OPERATORS_H
#define OPERATORS_H

#include "check.h"

/* 2x2 matrices mod 251 do not commute; add_mod on ints does. */
struct matrix {
	int m[4];
};

static struct matrix times(struct matrix a, struct matrix b)
{
	struct matrix c;

	for (int i = 0; i < 4; i++)
		c.m[i] = (a.m[i / 2 * 2] * b.m[i % 2] + a.m[i / 2 * 2 + 1] * b.m[2 + i % 2]) % 251;
	return c;
}

static void matrix_op(void *in, void *inout, int *len, MPI_Datatype *t)
{
	struct matrix *a = in, *b = inout;

	(void)t;
	for (int i = 0; i < *len; i++)
		b[i] = times(a[i], b[i]);
}

static void add_mod(void *in, void *inout, int *len, MPI_Datatype *t)
{
	int *a = in, *b = inout;

	(void)t;
	for (int i = 0; i < *len; i++)
		b[i] = (a[i] + b[i]) % 65521;
}

#endif
