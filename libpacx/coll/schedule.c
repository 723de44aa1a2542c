/* schedule.c: building a schedule: its steps, their order, its memory, its first error. */
#include "schedule.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datatype.h"
#include "p2p.h"
#include "sched_steps.h"
#include "spare.h"
#include "typemap.h"
#include "unlike.h"
#include "vendor.h"

#define PART_ALIGN 64
#define BLOCK_MOST ((size_t)PX_SPARE_MOST / 2)

struct px_sched_temp {
	struct px_sched_temp *next;
	size_t bytes;      /* with this head */
	MPI_Datatype type; /* or none */
	_Alignas(16) char data[];
};

struct px_sched *px_sched_new(struct px_comm *c, enum px_coll op)
{
	struct px_sched *s = calloc(1, sizeof *s);

	if (s) {
		s->c = c;
		s->op = op;
		s->after[0] = s->after[1] = -1;
	}
	return s;
}

void px_sched_free(struct px_sched *s)
{
	while (s->temps) {
		struct px_sched_temp *t = s->temps;

		s->temps = t->next;
		if (t->type != MPI_DATATYPE_NULL)
			px_n.Type_free(&t->type);
		px_spare_give(t, t->bytes);
	}
	for (int i = 0; i < s->nsteps; i++)
		if (s->step[i].local)
			px_sched_free(s->step[i].local);
	free(s->step);
	free(s);
}

void px_sched_fail(struct px_sched *s, int code, const char *fmt, ...)
{
	va_list ap;

	if (s->error != MPI_SUCCESS)
		return;
	s->error = code;
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof s->why, fmt, ap);
	va_end(ap);
}

void px_sched_fail_arg(struct px_sched *s, int r, MPI_Count count)
{
	char where[40] = "";

	if (r >= 0)
		snprintf(where, sizeof where, " of the block of rank %d", r);
	if (count < 0)
		px_sched_fail(s, MPI_ERR_COUNT, "the count%s is %lld", where, (long long)count);
	else
		px_sched_fail(s, MPI_ERR_TYPE, "the datatype%s is null or not valid", where);
}

bool px_sched_ok(const struct px_sched *s)
{
	return s->error == MPI_SUCCESS;
}

struct px_comm *px_sched_comm(const struct px_sched *s)
{
	return s->c;
}

void px_sched_round(struct px_sched *s)
{
	s->until = s->nsteps;
}

void px_sched_after(struct px_sched *s, int a, int b)
{
	s->after[0] = a;
	s->after[1] = b;
}

void px_sched_when(struct px_sched *s, int a)
{
	if (a >= 0)
		px_sched_after(s, a, -1);
}

void px_sched_packed(struct px_sched *s, MPI_Datatype t)
{
	bool matters = px_unlike_any && t != MPI_DATATYPE_NULL;

	s->sig = matters ? px_signature_get(t) : NULL;
	if (matters && !s->sig)
		px_sched_fail(s, MPI_ERR_TYPE,
			"the datatype has basic types that only the MPI of this site knows, and another site "
			"stores data in "
			"another way");
}

void px_sched_sub(struct px_sched *s, int sub)
{
	s->sub = sub;
}

static struct px_sched_temp *temp(struct px_sched *s, size_t bytes, bool *used)
{
	size_t whole = sizeof(struct px_sched_temp) + bytes + 1;
	struct px_sched_temp *t = px_spare_take(whole, used);

	if (!t) {
		px_sched_fail(s, MPI_ERR_NO_MEM, "out of memory");
		return NULL;
	}
	t->bytes = whole;
	t->next = s->temps;
	t->type = MPI_DATATYPE_NULL;
	s->temps = t;
	return t;
}

/* A long vector may be hundreds of slices with memory of their own: they share blocks, each twice as long as the one before. */
static void *part_of_block(struct px_sched *s, size_t bytes)
{
	size_t need = bytes + (PART_ALIGN - bytes % PART_ALIGN);
	char *at;

	if (need > s->block.left) {
		size_t size = 2 * s->block.size < BLOCK_MOST ? 2 * s->block.size : BLOCK_MOST;
		struct px_sched_temp *t;

		size = need > size ? need : size;
		t = temp(s, size + PART_ALIGN, &s->block.used);
		if (!t)
			return NULL;
		s->block.at = t->data + (PART_ALIGN - (uintptr_t)t->data % PART_ALIGN);
		s->block.size = s->block.left = size;
	}
	at = s->block.at;
	s->block.at += need;
	s->block.left -= need;
	return s->block.used ? memset(at, 0, bytes) : at;
}

void *px_sched_temp(struct px_sched *s, size_t bytes)
{
	struct px_sched_temp *t;
	bool used;

	if (bytes >= PX_SPARE_LEAST)
		return part_of_block(s, bytes);
	t = temp(s, bytes, &used);
	return t ? t->data : NULL;
}

int px_sched_temp_type(struct px_sched *s, MPI_Datatype t)
{
	if (!px_sched_temp(s, 0)) {
		px_n.Type_free(&t);
		return MPI_ERR_NO_MEM;
	}
	s->temps->type = t;
	return MPI_SUCCESS;
}

void *px_sched_temp_typed(struct px_sched *s, MPI_Count count, MPI_Datatype t)
{
	const struct px_type *p = px_type_get(t);
	MPI_Count low, high;
	char *base;

	if (!p) {
		px_sched_fail(s, MPI_ERR_TYPE, "a datatype is null or not valid");
		return NULL;
	}
	/* The last element may lie below the first when the extent is negative. */
	low = p->true_lb + (count > 0 && p->extent < 0 ? (count - 1) * p->extent : 0);
	high = p->true_lb + p->true_extent + (count > 0 && p->extent > 0 ? (count - 1) * p->extent : 0);
	base = px_sched_temp(s, (size_t)(high - low));
	return base ? base - low : NULL;
}

static struct px_step *add(struct px_sched *s, enum px_step_kind kind)
{
	struct px_step *st;

	if (s->nsteps == s->cap) {
		int cap = s->cap ? 2 * s->cap : 8;
		struct px_step *more = realloc(s->step, (size_t)cap * sizeof *more);

		if (!more) {
			px_sched_fail(s, MPI_ERR_NO_MEM, "out of memory");
			return NULL;
		}
		s->step = more;
		s->cap = cap;
	}
	st = &s->step[s->nsteps++];
	memset(st, 0, sizeof *st);
	st->kind = kind;
	st->native = MPI_REQUEST_NULL;
	st->sub = s->sub;
	st->until = s->after[0] == -1 && s->after[1] == -1 ? s->until : 0;
	memcpy(st->after, s->after, sizeof st->after);
	s->after[0] = s->after[1] = -1;
	px_req_init(&st->req, s->c);
	return st;
}

static struct px_step *message(struct px_sched *s, enum px_step_kind kind, const void *buf, MPI_Count count,
	MPI_Datatype t, int peer)
{
	struct px_step *st = add(s, kind);

	if (!st)
		return NULL;
	px_req_args(&st->req, buf, count, t, peer, 0);
	st->req.sig = s->sig;
	st->req.kind = kind == PX_STEP_SEND ? PX_SEND : PX_RECV;
	return st;
}

/* The number of a step, which px_sched_after takes. */
static int number(const struct px_sched *s, const struct px_step *st)
{
	return st ? (int)(st - s->step) : -1;
}

int px_sched_send(struct px_sched *s, const void *buf, MPI_Count count, MPI_Datatype t, int dst)
{
	return number(s, message(s, PX_STEP_SEND, buf, count, t, dst));
}

int px_sched_recv(struct px_sched *s, void *buf, MPI_Count count, MPI_Datatype t, int src)
{
	return number(s, message(s, PX_STEP_RECV, buf, count, t, src));
}

int px_sched_recv_all(struct px_sched *s, void *buf, MPI_Count bytes, int src)
{
	return px_sched_exact(s, px_sched_recv(s, buf, bytes, MPI_BYTE, src));
}

int px_sched_exact(struct px_sched *s, int step)
{
	if (step >= 0)
		s->step[step].exact = true;
	return step;
}

int px_sched_native(struct px_sched *s, const struct px_call *call)
{
	struct px_step *st = add(s, PX_STEP_NATIVE);

	if (st) {
		st->call = *call;
		st->nth = s->natives++;
		st->behind = s->dups;
		s->dups += call->kind == PX_CALL_DUP;
	}
	return number(s, st);
}

int px_sched_call(struct px_sched *s, int (*fn)(struct px_sched *, void *), void *arg)
{
	struct px_step *st = add(s, PX_STEP_CALL);

	if (st) {
		st->fn = fn;
		st->arg = arg;
	}
	return number(s, st);
}

static int nothing(struct px_sched *s, void *arg)
{
	(void)s;
	(void)arg;
	return MPI_SUCCESS;
}

int px_sched_join(struct px_sched *s, int a, int b)
{
	if (a == b || b < 0)
		return a;
	if (a < 0)
		return b;
	px_sched_after(s, a, b);
	return px_sched_call(s, nothing, NULL);
}
