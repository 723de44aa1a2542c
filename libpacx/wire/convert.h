/* convert.h: data as one machine stores them into data as another one does.
 *
 * The receiver makes right: what travels are the sender's own bytes, packed without gaps in the order of its type map; whoever
 * receives them knows the types (a px_sig) and the sender's representation (its hello), and converts. Pure: no MPI, no sockets, and
 * the machine that runs it may be a third one. Between alike machines nothing of this is called.
 */
#ifndef PX_CONVERT_H
#define PX_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "repr.h"

/* What basic types of MPI consist of: X(name, C or Fortran name in messages). Complex types and pairs are two atoms. */
#define PX_ATOMS(X)                                                                                          \
	X(BYTE, "byte")                                                                                      \
	X(INT2, "16-bit integer")                                                                            \
	X(INT4, "32-bit integer")                                                                            \
	X(INT8, "64-bit integer")                                                                            \
	X(LONG, "long")                                                                                      \
	X(ULONG, "unsigned long")                                                                            \
	X(WCHAR, "wchar_t")                                                                                  \
	X(AINT, "MPI_Aint")                                                                                  \
	X(INTEGER, "INTEGER")                                                                                \
	X(FLOAT, "float")                                                                                    \
	X(DOUBLE, "double")                                                                                  \
	X(LDOUBLE, "long double")                                                                            \
	X(REAL16, "REAL*16")                                                                                 \
	X(LOGICAL, "LOGICAL")                                                                                \
	X(LOGICAL1, "LOGICAL*1")                                                                             \
	X(LOGICAL2, "LOGICAL*2")                                                                             \
	X(LOGICAL4, "LOGICAL*4")                                                                             \
	X(LOGICAL8, "LOGICAL*8")

enum px_atom {
#define X(name, text) PX_ATOM_##name,
	PX_ATOMS(X)
#undef X
		PX_ATOM_COUNT
};

const char *px_atom_name(enum px_atom a);
/* px_atom_size: bytes of one on a machine. */
size_t px_atom_size(enum px_atom a, const struct px_repr *r);

/* px_convert: n atoms from `in`, as machine `from` stores them, to `out`, as machine `to` does. in and out may be the same if the sizes
 * are; otherwise they may not overlap. Returns the index of the first one whose value machine `to` cannot store, or n; all
 * are converted anyway, those as far as they go (lowest bits; infinity). */
uint64_t px_convert(enum px_atom a, const struct px_repr *from, const void *in, const struct px_repr *to,
	void *out, uint64_t n);
/* px_convert_same: would px_convert copy? */
bool px_convert_same(enum px_atom a, const struct px_repr *from, const struct px_repr *to);
/* px_atom_text: one atom's value, for people. */
void px_atom_text(enum px_atom a, const struct px_repr *r, const void *in, char *out, size_t cap);

/* The type signature of one element of a datatype: runs of atoms. */
struct px_sig {
	int n, cap;
	struct px_sig_run {
		uint64_t count;
		enum px_atom atom;
	} * run;
};

/* px_sig_add: `count` more atoms at the end; 0 or PX_ENOMEM. px_sig_free: what it holds. */
int px_sig_add(struct px_sig *s, enum px_atom a, uint64_t count);
void px_sig_free(struct px_sig *s);
uint64_t px_sig_size(const struct px_sig *s, const struct px_repr *r); /* bytes, packed */
/* px_sig_length: how many bytes `bytes` bytes of data of machine `from` become on machine `to`. */
uint64_t px_sig_length(
	const struct px_sig *s, const struct px_repr *from, const struct px_repr *to, uint64_t bytes);
/* px_sig_same: nothing has to be converted. px_sig_in_place: all atoms are equally long on both. */
bool px_sig_same(const struct px_sig *s, const struct px_repr *from, const struct px_repr *to);
bool px_sig_in_place(const struct px_sig *s, const struct px_repr *from, const struct px_repr *to);

#define PX_CURSOR_STEPS 16

/* A message that is converted while it arrives. */
struct px_cursor {
	const struct px_sig *sig;
	const struct px_repr *from, *to;
	uint64_t left;    /* elements of the datatype to come, the begun one included */
	uint64_t whole;   /* not 0: the signature is one run, this long for all elements */
	int run;          /* the next atom: in this run */
	uint64_t in_run;  /* ... so many have been converted before it */
	uint64_t in, out; /* bytes read and written so far */
	uint64_t atoms;   /* atoms converted */
	uint64_t one; /* not 0: an element is so many bytes on both machines, and of few runs (simple) ... */
	struct px_cursor_step {
		uint8_t size;
		bool swap;
	} step[PX_CURSOR_STEPS]; /* ... whose atoms are the same bytes, or the same in reverse */
	bool misfit;             /* one did not fit: */
	uint64_t which;          /* its number among the atoms of the message */
	enum px_atom atom;
	char value[48];
};

/* px_cursor_init: for `elements` elements of the datatype. */
void px_cursor_init(struct px_cursor *c, const struct px_sig *s, const struct px_repr *from,
	const struct px_repr *to, uint64_t elements);
/* px_cursor_run: `have` bytes of the message lie at in (always its beginning): convert the atoms that are complete and have
 * not been, as long as elements are left, to their places behind out. */
void px_cursor_run(struct px_cursor *c, const void *in, uint64_t have, void *out);

#endif
