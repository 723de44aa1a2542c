/* rep.c: see rep.h. */
#include "rep.h"

#include <string.h>

#include "comm.h"
#include "convert.h"
#include "datatype.h"
#include "err.h"
#include "floats.h"
#include "state.h"
#include "typemap.h"
#include "unlike.h"

const struct px_repr px_rep_external32 = { .big_endian = 1,
	.size_long = 4,
	.size_pointer = 8,
	.size_wchar = 2,
	.size_long_double = 16,
	.align_double = 1,
	.align_long_long = 1,
	.align_long_double = 1,
	.long_double_format = PX_FLOAT_QUAD,
	.size_fint = 4,
	.size_flogical = 4,
	.flogical_true = 1 };
static const struct px_repr internal = { .size_long = 8,
	.size_pointer = 8,
	.size_wchar = 4,
	.size_long_double = 16,
	.align_double = 1,
	.align_long_long = 1,
	.align_long_double = 1,
	.long_double_format = PX_FLOAT_QUAD,
	.size_fint = 8,
	.size_flogical = 8,
	.flogical_true = 1 };

int px_rep_of(const struct px_file *f, const char *datarep, MPI_Datatype etype, MPI_Datatype filetype,
	const struct px_repr **rep)
{
	*rep = NULL;
	if (strcmp(datarep, "external32") == 0)
		*rep = &px_rep_external32;
	else if (strcmp(datarep, "internal") == 0 && px_unlike_some(f->c))
		*rep = &internal;
	else if (strcmp(datarep, "native") != 0 && strcmp(datarep, "internal") != 0 &&
		 f->files == PX_FILES_CARRIED)
		return MPI_ERR_UNSUPPORTED_DATAREP;
	return !*rep || (px_signature_get(etype) && px_signature_get(filetype)) ? MPI_SUCCESS : MPI_ERR_TYPE;
}

const char *px_rep_name(const struct px_repr *rep)
{
	return rep == &px_rep_external32 ? "external32" : rep == &internal ? "internal" : "native";
}

MPI_Count px_rep_size(const struct px_repr *rep, MPI_Datatype t)
{
	const struct px_type *p = px_type_get(t);
	const struct px_sig *s = rep ? px_signature_get(t) : NULL;

	return s ? (MPI_Count)px_sig_size(s, rep) : p ? p->size : 0;
}

MPI_Count px_rep_bytes(const struct px_repr *rep, MPI_Datatype t, MPI_Count bytes)
{
	const struct px_sig *s = rep ? px_signature_get(t) : NULL;

	return s ? (MPI_Count)px_sig_length(s, px_unlike_here(), rep, (uint64_t)bytes) : bytes;
}

static int convert(MPI_Datatype t, const struct px_repr *from, const struct px_repr *to, MPI_Count count,
	const void *in, uint64_t bytes, void *out, MPI_Count *moved)
{
	const struct px_sig *s = px_signature_get(t);
	struct px_cursor c;

	if (!s)
		return MPI_ERR_TYPE;
	px_cursor_init(&c, s, from, to, (uint64_t)count);
	px_cursor_run(&c, in, bytes, out);
	*moved = (MPI_Count)c.out;
	if (!c.misfit)
		return MPI_SUCCESS;
	px_log(PX_LOG_ERROR,
		"rank %d: %s: element %llu is %s, which does not fit into the %s of %s, of %zu bytes",
		px.grank, px_rep_name(to == px_unlike_here() ? from : to), (unsigned long long)c.which,
		c.value, px_atom_name(c.atom), to == px_unlike_here() ? "this site" : px_rep_name(to),
		px_atom_size(c.atom, to));
	return MPI_ERR_CONVERSION;
}

int px_rep_put(const struct px_repr *rep, MPI_Datatype t, MPI_Count count, const void *packed, void *out)
{
	const struct px_type *p = px_type_get(t);
	MPI_Count moved;

	return convert(t, px_unlike_here(), rep, count, packed, (uint64_t)(count * p->size), out, &moved);
}

int px_rep_get(const struct px_repr *rep, MPI_Datatype t, MPI_Count count, const void *in, MPI_Count bytes,
	void *packed, MPI_Count *moved)
{
	return convert(t, rep, px_unlike_here(), count, in, (uint64_t)bytes, packed, moved);
}
