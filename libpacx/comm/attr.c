/* attr.c: attributes of MPI_COMM_WORLD and MPI_COMM_SELF at the end of the program.
 *
 * MPI_Finalize must call their delete callbacks, last set first, while the world still answers; so libpacx keeps a
 * list of what was set on these two and deletes it before it shuts down. All other communicators: native. What the callbacks see: keyval.c.
 */
#include "attr.h"

#include <stdlib.h>

#include "bind.h"
#include "comm_find.h"
#include "lock.h"
#include "vendor.h"

struct entry {
	struct entry *next;
	MPI_Comm comm;
	int keyval;
};

static struct entry *entries; /* last set first */

static void forget(MPI_Comm comm, int keyval)
{
	for (struct entry **at = &entries; *at; at = &(*at)->next) {
		struct entry *e = *at;

		if (e->comm == comm && e->keyval == keyval) {
			*at = e->next;
			free(e);
			return;
		}
	}
}

int px_attr_note(MPI_Comm comm, int keyval)
{
	struct entry *e;

	if (comm != px_world_native && comm != MPI_COMM_SELF)
		return MPI_SUCCESS;
	forget(comm, keyval);
	e = malloc(sizeof *e);
	if (!e)
		return MPI_ERR_NO_MEM;
	*e = (struct entry){ entries, comm, keyval };
	entries = e;
	return MPI_SUCCESS;
}

int px_Comm_set_attr(MPI_Comm comm, int keyval, void *value)
{
	int rc;

	px_blocking(rc, px_n.Comm_set_attr(comm, keyval, value)); /* may delete the value before */
	return rc == MPI_SUCCESS ? px_attr_note(comm, keyval) : rc;
}

int px_Comm_delete_attr(MPI_Comm comm, int keyval)
{
	int rc;

	forget(comm, keyval);
	px_blocking(rc, px_n.Comm_delete_attr(comm, keyval));
	return rc;
}

int px_Attr_put(MPI_Comm comm, int keyval, void *value)
{
	return px_Comm_set_attr(comm, keyval, value);
}

int px_Attr_delete(MPI_Comm comm, int keyval)
{
	return px_Comm_delete_attr(comm, keyval);
}

static void delete_on(MPI_Comm comm)
{
	struct entry *e = entries;

	while (e) {
		int keyval = e->keyval;

		if (e->comm != comm) {
			e = e->next;
			continue;
		}
		forget(comm, keyval);
		px_n.Comm_delete_attr(comm, keyval); /* the callback may set or delete others: begin again */
		e = entries;
	}
}

void px_attr_finalize(void)
{
	delete_on(MPI_COMM_SELF);
	delete_on(px_world_native);
}
