/* arguments.c: what a vendor minds of a collective's arguments and nobody else would notice: see coll.h.
 *
 * Asked of the vendor or decided as it does, since programs that it lets run are to run here, too: and at each rank by itself, as natively.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "basic.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "native.h"
#include "raise.h"

#define PAIRS 16 /* of operator and type that are remembered */

/* Reduce_local of no elements, with nobody told of its error but us. */
static int asked(MPI_Datatype t, MPI_Op op)
{
	MPI_Comm told[] = { MPI_COMM_WORLD, MPI_COMM_SELF }; /* one of them is, as the vendor likes */
	MPI_Errhandler was[2];
	char in[16] = { 0 }, out[16] = { 0 };
	int rc;

	for (int i = 0; i < 2; i++) {
		px_n.Comm_get_errhandler(told[i], &was[i]);
		px_n.Comm_set_errhandler(told[i], MPI_ERRORS_RETURN);
	}
	rc = px_n.Reduce_local(in, out, 0, t, op);
	for (int i = 0; i < 2; i++) {
		px_n.Comm_set_errhandler(told[i], was[i]);
		px_n.Errhandler_free(&was[i]);
	}
	return rc;
}

/* The vendor's answer is kept for pairs that are right: of those it applies a predefined operator to, none is ever freed. */
int px_coll_op(struct px_comm *c, MPI_Datatype t, MPI_Op op)
{
	static struct {
		MPI_Datatype t;
		MPI_Op op;
	} right[PAIRS];
	static unsigned n;
	int rc;

	if (!px_type_get(t))
		return px_raise_type(c);
	if (op == MPI_OP_NULL)
		return px_raise(c, MPI_ERR_OP, "the operator is MPI_OP_NULL");
	for (unsigned i = 0; i < PAIRS && i < n; i++)
		if (right[i].t == t && right[i].op == op)
			return MPI_SUCCESS;
	if (px_op_code(op) == 0)
		return MPI_SUCCESS; /* the program's own */
	rc = asked(t, op);
	if (rc != MPI_SUCCESS)
		return px_raise_as(c, rc, NULL);
	right[n % PAIRS].t = t;
	right[n++ % PAIRS].op = op;
	return MPI_SUCCESS;
}

/* Is the check switched off, as MPICH and those that descend from it let users do? */
static bool may_alias(void)
{
	const char *mpich = getenv("MPIR_CVAR_COLL_ALIAS_CHECK"),
		   *cray = getenv("MPICH_NO_BUFFER_ALIAS_CHECK");

	return (mpich && (!strcmp(mpich, "0") || !strcasecmp(mpich, "no") || !strcasecmp(mpich, "off") ||
				 !strcasecmp(mpich, "false"))) ||
	       (cray && *cray && strcmp(cray, "0") != 0);
}

const char px_coll_alias[] =
	"the send buffer and the receive buffer are the same (MPI_IN_PLACE says so where that is allowed)";

bool px_coll_aliased(const void *in, const void *out)
{
	return in == out && !PX_OVER_OPENMPI && !may_alias();
}

int px_coll_apart(struct px_comm *c, const void *in, const void *out)
{
	return px_coll_aliased(in, out) ? px_raise(c, MPI_ERR_BUFFER, "%s", px_coll_alias) : MPI_SUCCESS;
}

int px_coll_apart_own(struct px_comm *c, const void *mine, MPI_Count count, MPI_Datatype t, const void *all,
	MPI_Count at, MPI_Count own, bool regular, MPI_Datatype in_all)
{
	if (mine == MPI_IN_PLACE || t != in_all || count == 0 || own == 0 || (regular && count != own))
		return MPI_SUCCESS;
	return px_coll_apart(c, mine, (const char *)all + at * px_type_get(in_all)->size);
}

int px_coll_apart_reduced(struct px_comm *c, const void *in, const void *out, bool all)
{
	if (in == out && PX_OVER_OPENMPI)
		return px_raise(c, all ? MPI_ERR_BUFFER : MPI_ERR_ARG, "%s", px_coll_alias);
	return px_coll_apart(c, in, out);
}
