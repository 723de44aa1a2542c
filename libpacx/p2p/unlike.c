/* unlike.c: see unlike.h.
 *
 * Design. The payload lies in one piece of memory that fills from its beginning, segment by segment; after each one the cursor converts
 * the atoms that have become complete, so an atom that two segments share waits for the second. If all atoms keep their
 * length and the datatype is contiguous that memory is the user's buffer; if only the length changes, atoms go from there
 * to the user's buffer; else to memory that is unpacked in the end.
 */
#include "unlike.h"

#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "datatype.h"
#include "err.h"
#include "raise.h"
#include "state.h"
#include "typemap.h"

/* A message that is made right while it arrives. */
struct px_right {
	struct px_cursor cursor;
	int src;          /* comm rank of the sender */
	const char *site; /* its site's name */
	uint64_t total;   /* bytes of the message */
	uint64_t room;    /* bytes that are wanted at most */
	uint64_t length;  /* bytes that it has here */
	uint64_t told;    /* what the sender has said of that; 0: nothing */
	char *packed;     /* where converted bytes go; NULL: to where they were */
	bool owned;       /* packed is our own memory */
	bool unpack;      /* in the end */
};

bool px_unlike_any;
static const struct px_repr **of_site; /* [nsites]; NULL: alike */

static const struct px_repr *here(void)
{
	return &px.world->site[px.site].repr;
}

const struct px_repr *px_unlike_here(void)
{
	return here();
}

const struct px_repr *px_unlike_layout(int g)
{
	const struct px_repr *there = &px.world->site[px_world_site(px.world, g)].repr;

	return there != here() && !px_repr_layout_alike(there, here()) ? there : NULL;
}

int px_unlike_open(void)
{
	const struct px_repr **of = calloc((size_t)px.world->nsites, sizeof *of);
	bool any = false;

	if (!of)
		return PX_ENOMEM;
	for (int i = 0; i < px.world->nsites; i++) {
		if (px_repr_alike(&px.world->site[i].repr, here()))
			continue;
		of[i] = &px.world->site[i].repr;
		any = true;
	}
	of_site = of; /* another thread may read the old one still: it stays */
	px_unlike_any = any;
	return PX_OK;
}

const struct px_repr *px_unlike(int g)
{
	return px_unlike_any ? of_site[px_world_site(px.world, g)] : NULL;
}

bool px_unlike_some(const struct px_comm *c)
{
	const struct px_repr *first = NULL;

	for (int p = 0; px_unlike_any && p < c->nparts; p++) {
		const struct px_repr *r = &px.world->site[c->ranks->part[p].site].repr;

		if (first && !px_repr_alike(first, r))
			return true;
		first = r;
	}
	return false;
}

/* The signature of what r sends or receives; NULL: r->why says what is wrong with its datatype. */
static const struct px_sig *signature(struct px_req *r)
{
	const struct px_type *t = px_type_get(r->type);
	const struct px_sig *s = r->sig ? r->sig : px_signature_get(r->type);

	if (s && !r->sig && px_sig_size(s, here()) != (uint64_t)t->size) {
		r->why = px_text("an element of the datatype has %lld bytes for the MPI of this site, but "
				 "%llu by its basic types; it "
				 "cannot go to or come from a site that stores data in another way",
			(long long)t->size, (unsigned long long)px_sig_size(s, here()));
		return NULL;
	}
	if (!s)
		r->why = px_text("the datatype has basic types that only the MPI of this site knows; they "
				 "cannot go to or come from a "
				 "site that stores data in another way");
	return s;
}

int px_unlike_tell(struct px_req *r, struct px_frame *f)
{
	const struct px_repr *to = px_unlike((int)f->dst);
	const struct px_sig *s = to ? signature(r) : NULL;

	if (!to)
		return MPI_SUCCESS;
	if (!s)
		return MPI_ERR_TYPE;
	f->offset = px_sig_length(s, here(), to, f->total);
	if (f->offset == f->total)
		f->offset = 0;
	return MPI_SUCCESS;
}

bool px_unlike_receive(struct px_req *r, const struct px_frame *f, int src)
{
	const struct px_repr *from = px_unlike((int)f->src);
	const struct px_sig *s = from ? signature(r) : NULL;
	const struct px_type *t = px_type_get(r->type);
	uint64_t one = s ? px_sig_size(s, here()) : 0;
	struct px_right *x;

	if (from && !s)
		r->error = MPI_ERR_TYPE; /* it is received all the same, so that its sender gets on */
	if (!s || px_sig_same(s, from, here()))
		return true;
	x = calloc(1, sizeof *x);
	if (!x)
		return false;
	x->src = src;
	x->site = px.world->site[px_world_site(px.world, (int)f->src)].name;
	x->total = f->total;
	x->told = f->offset;
	x->room = (uint64_t)(r->count * t->size);
	x->length = px_sig_length(s, from, here(), f->total);
	px_cursor_init(&x->cursor, s, from, here(), one > 0 ? x->room / one : 0);
	r->x.right = x;
	x->unpack = !t->contig;
	if (t->contig) {
		x->packed = r->buf;
		return true;
	}
	/* Where nothing changes its length the memory that a long message is received into will do. */
	x->owned = f->seg == 0 || !px_sig_in_place(s, from, here());
	x->packed = x->owned ? malloc((size_t)(x->length < x->room ? x->length : x->room) + 1) : NULL;
	return !x->owned || x->packed;
}

uint64_t px_right_length(const struct px_right *x)
{
	return x->length;
}

bool px_right_in_place(const struct px_right *x)
{
	return !x->unpack && x->length <= x->room &&
	       px_sig_in_place(x->cursor.sig, x->cursor.from, x->cursor.to);
}

void px_right_some(struct px_right *x, const void *in, uint64_t have)
{
	char *out = x->packed;

	if (!out)
		memcpy(&out, &in, sizeof out); /* temporary memory of ours */
	px_cursor_run(&x->cursor, in, have, out);
}

/* What is wrong with the message that x has converted: MPI error code, and the text. */
static int wrong(const struct px_right *x, char **why)
{
	const struct px_cursor *c = &x->cursor;

	if (c->misfit) {
		*why = px_text("the message from rank %d (site %s): element %llu is %s, which does not fit "
			       "into the %s of "
			       "this site, of %zu bytes",
			x->src, x->site, (unsigned long long)c->which, c->value, px_atom_name(c->atom),
			px_atom_size(c->atom, c->to));
		return MPI_ERR_TRUNCATE;
	}
	if (x->told > 0 && x->told != x->length) {
		*why = px_text("the message from rank %d (site %s) has %llu bytes here for the datatype of "
			       "its sender, but %llu for "
			       "that of the receive",
			x->src, x->site, (unsigned long long)x->told, (unsigned long long)x->length);
		return MPI_ERR_TYPE;
	}
	if (x->length < x->room && c->in < x->total) {
		*why = px_text("the message from rank %d (site %s) ends within an element: it was sent as "
			       "another datatype",
			x->src, x->site);
		return MPI_ERR_TYPE;
	}
	return MPI_SUCCESS;
}

int px_unlike_end(struct px_req *r, const void *in)
{
	struct px_right *x = r->x.right;
	char *why = NULL;
	int rc = MPI_SUCCESS;

	px_right_some(x, in, x->total);
	if (x->unpack)
		rc = px_type_unpack(x->packed ? x->packed : in, x->cursor.out, r->buf, r->count, r->type);
	if (rc == MPI_SUCCESS)
		rc = wrong(x, &why);
	if (r->error == MPI_SUCCESS) {
		r->error = rc;
		r->why = why;
	} else {
		free(why); /* there was something before that */
	}
	px_right_free(x);
	r->x.right = NULL;
	return r->error;
}

int px_unlike_unpack(struct px_req *r, int src, int g, const void *in, uint64_t bytes)
{
	const struct px_frame f = { .src = (uint32_t)g, .total = bytes };

	if (!px_unlike_receive(r, &f, src))
		r->error = MPI_ERR_NO_MEM;
	if (r->x.right)
		return px_unlike_end(r, in);
	if (r->error == MPI_SUCCESS)
		r->error = px_type_unpack(in, bytes, r->buf, r->count, r->type);
	return r->error;
}

void px_right_free(struct px_right *x)
{
	if (x && x->owned)
		free(x->packed);
	free(x);
}
