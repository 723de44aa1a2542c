/* pack_external.c: MPI_Pack_external and kin: data in the standard's representation, which any machine reads.
 *
 * Owns nothing; called by the wrappers. As in files (rep.c): elements are packed as in memory, then converted. The vendors' own do not
 * agree about a long, and fail with structures and long doubles; they get what we do not know: other representations, types that
 * only they have, and worlds of one site.
 */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "datatype.h"
#include "raise.h"
#include "rep.h"
#include "state.h"
#include "typemap.h"
#include "vendor.h"

static bool ours(const char *datarep, MPI_Datatype t, MPI_Count count)
{
	return px.world->nsites > 1 && count >= 0 && strcmp(datarep, "external32") == 0 &&
	       px_signature_get(t);
}

int px_Pack_external_size(const char datarep[], MPI_Count count, MPI_Datatype t, MPI_Aint *size)
{
	if (!ours(datarep, t, count))
		return px_n.Pack_external_size(datarep, (int)count, t, size);
	*size = (MPI_Aint)(count * px_rep_size(&px_rep_external32, t));
	return MPI_SUCCESS;
}

/* What both directions begin with: *bytes from position `at` of the buffer, in which there has to be room, and memory for the elements as they
 * are packed here; NULL: there are none. MPI error code, raised. */
static int begin(MPI_Datatype t, MPI_Count count, MPI_Aint size, MPI_Aint at, MPI_Count *bytes, void **packed)
{
	*bytes = count * px_rep_size(&px_rep_external32, t);
	*packed = NULL;
	if (at < 0 || at > size || *bytes > size - at)
		return px_raise(NULL, MPI_ERR_TRUNCATE, "%lld bytes at position %lld, the buffer has %lld",
			(long long)*bytes, (long long)at, (long long)size);
	if (*bytes == 0)
		return MPI_SUCCESS;
	*packed = malloc((size_t)(count * px_type_get(t)->size));
	return *packed ? MPI_SUCCESS : px_raise_memory(NULL);
}

static int misfit(int rc)
{
	return rc == MPI_SUCCESS ? rc : px_raise(NULL, rc, "a value does not fit");
}

int px_Pack_external(const char datarep[], const void *in, MPI_Count count, MPI_Datatype t, void *out,
	MPI_Aint size, MPI_Aint *position)
{
	MPI_Count bytes;
	void *packed;
	int rc;

	if (!ours(datarep, t, count))
		return px_n.Pack_external(datarep, in, (int)count, t, out, size, position);
	rc = begin(t, count, size, *position, &bytes, &packed);
	if (!packed)
		return rc;
	rc = px_type_pack(in, count, t, packed);
	if (rc == MPI_SUCCESS)
		rc = misfit(px_rep_put(&px_rep_external32, t, count, packed, (char *)out + *position));
	free(packed);
	if (rc == MPI_SUCCESS)
		*position += (MPI_Aint)bytes;
	return rc;
}

int px_Unpack_external(const char datarep[], const void *in, MPI_Aint size, MPI_Aint *position, void *out,
	MPI_Count count, MPI_Datatype t)
{
	MPI_Count bytes, moved = 0;
	void *packed;
	int rc;

	if (!ours(datarep, t, count))
		return px_n.Unpack_external(datarep, in, size, position, out, (int)count, t);
	rc = begin(t, count, size, *position, &bytes, &packed);
	if (!packed)
		return rc;
	rc = misfit(px_rep_get(
		&px_rep_external32, t, count, (const char *)in + *position, bytes, packed, &moved));
	if (rc == MPI_SUCCESS)
		rc = px_type_unpack(packed, (uint64_t)moved, out, count, t);
	free(packed);
	if (rc == MPI_SUCCESS)
		*position += (MPI_Aint)bytes;
	return rc;
}
