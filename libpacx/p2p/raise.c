/* raise.c: see raise.h. */
#include "raise.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "channel.h"
#include "comm.h"
#include "comm_find.h"
#include "err.h"
#include "lock.h"
#include "request.h"
#include "state.h"
#include "vendor.h"

#define TEXT_MAX 400

MPI_Comm px_raised_on(const struct px_comm *c)
{
	/* WORLD's handler must see MPI_COMM_WORLD, the handle that the application knows. */
	return !c || c->native == px_world_native ? MPI_COMM_WORLD : c->face;
}

static bool ends_the_job(MPI_Errhandler h)
{
#ifdef MPI_ERRORS_ABORT
	if (h == MPI_ERRORS_ABORT)
		return true;
#endif
	return h == MPI_ERRORS_ARE_FATAL;
}

/* h as a get_errhandler has given it. */
static void put_back(MPI_Errhandler h)
{
	if (!ends_the_job(h) && h != MPI_ERRORS_RETURN)
		px_n.Errhandler_free(&h);
}

/* Does an error on comm end the job? */
static bool fatal_on(MPI_Comm comm)
{
	MPI_Errhandler h = MPI_ERRHANDLER_NULL;
	bool fatal;

	if (!px.on || px_n.Comm_get_errhandler(comm, &h) != MPI_SUCCESS)
		return false;
	fatal = ends_the_job(h);
	put_back(h);
	return fatal;
}

/* text NULL: the vendor's for the class. */
static void end_job(int code, const char *text)
{
	char why[TEXT_MAX + MPI_MAX_ERROR_STRING], vendors[MPI_MAX_ERROR_STRING] = "";
	int class = code, len;

	if (!text)
		px_n.Error_string(code, vendors, &len);
	px_n.Error_class(code, &class);
	snprintf(why, sizeof why, "rank %d: %s%s%s", px.grank, px_function ? px_function : "",
		px_function ? ": " : "", text ? text : vendors);
	px_channel_abort(class, why); /* the out-daemon prints it */
}

_Thread_local bool px_raising;
int px_hushed;
static MPI_Errhandler worlds; /* MPI_COMM_WORLD's, while px_hushed is not 0 */

/* MPI_COMM_WORLD gets its own handler back (true) for an error of another thread than those that are hushed. */
static void world_speaks(MPI_Comm comm, bool yes)
{
	if (px_hushed > 0 && comm == MPI_COMM_WORLD)
		px_n.Comm_set_errhandler(comm, yes ? worlds : MPI_ERRORS_RETURN);
}

static int raise_on(MPI_Comm comm, int code, const char *text)
{
	int rc;

	world_speaks(comm, true);
	if (fatal_on(comm))
		end_job(code, text);
	px_raising = true;
	px_blocking(rc, px_n.Comm_call_errhandler(comm, code));
	px_raising = false;
	world_speaks(comm, false);
	(void)rc;
	return code;
}

#ifdef MPICH_VERSION
bool px_hush(const struct px_comm *c)
{
	MPI_Errhandler own, world;
	bool apart;

	if (px_raised_on(c) == MPI_COMM_WORLD ||
		px_n.Comm_get_errhandler(px_raised_on(c), &own) != MPI_SUCCESS)
		return false;
	px_n.Comm_get_errhandler(MPI_COMM_WORLD, &world);
	apart = own != (px_hushed > 0 ? worlds : world);
	put_back(own);
	if (apart && px_hushed++ == 0) {
		worlds = world;
		px_n.Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	} else {
		put_back(world);
	}
	return apart;
}

void px_hush_end(void)
{
	if (--px_hushed > 0)
		return;
	px_n.Comm_set_errhandler(MPI_COMM_WORLD, worlds);
	put_back(worlds);
}
#else
bool px_hush(const struct px_comm *c)
{
	(void)c;
	return false;
}

void px_hush_end(void)
{
}
#endif

int px_raise_as(struct px_comm *c, int code, const char *text)
{
	if (px_serving)
		return code; /* kept: the operation that it belongs to raises it when it completes */
	return raise_on(px_raised_on(c), code, text);
}

void px_raise_fatal(MPI_Errhandler handler, int code)
{
	if (px.on && ends_the_job(handler))
		end_job(code, NULL);
	put_back(handler);
}

int px_raise(struct px_comm *c, int code, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return px_raise_as(c, code, text);
}

int px_raise_count(struct px_comm *c, MPI_Count count)
{
	return px_raise(c, MPI_ERR_COUNT, "count %lld%s", (long long)count, count < 0 ? "" : " is too large");
}

int px_raise_type(struct px_comm *c)
{
	return px_raise(c, MPI_ERR_TYPE, "the datatype is null or not valid");
}

int px_raise_null(const char *name)
{
	const char *outer = px_begin(name);
	int rc = px_raise(NULL, MPI_ERR_COMM, "the communicator is MPI_COMM_NULL");

	px_end(outer);
	return rc;
}

int px_raise_no_output(struct px_comm *c, const char *name)
{
	const char *outer = px_begin(name);
	int rc = px_raise(c, MPI_ERR_ARG, "an output argument is NULL");

	px_end(outer);
	return rc;
}

int px_raise_beyond(MPI_Comm comm, const char *name)
{
	const char *outer = px_begin(name);
	int rc = raise_on(comm, MPI_ERR_GROUP,
		"the group has ranks of other sites, which are not in the communicator or window");

	px_end(outer);
	return rc;
}

int px_raise_memory(struct px_comm *c)
{
	return px_raise(c, MPI_ERR_NO_MEM, "out of memory");
}

char *px_text(const char *fmt, ...)
{
	char text[TEXT_MAX], *heap;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	heap = malloc(sizeof text);
	if (heap && n >= 0)
		snprintf(heap, sizeof text, "%s", text);
	return heap;
}

/* The constants in which the vendors differ, and which programs use as counts. This vendor's own are those of its mpi.h. */
#ifdef OPEN_MPI
#define ROW(name, openmpi, mpich)                                                                            \
	{                                                                                                    \
#name, name, mpich                                                                           \
	}
#elif defined(PX_ABI) /* whose own are larger than either's */
#define ROW(name, openmpi, mpich)                                                                            \
	{                                                                                                    \
#name, openmpi, mpich                                                                        \
	}
#else
#define ROW(name, openmpi, mpich)                                                                            \
	{                                                                                                    \
#name, openmpi, name                                                                         \
	}
#endif
static const struct constant {
	const char *name;
	unsigned long long openmpi, mpich;
} constants[] = {
	ROW(MPI_MAX_PROCESSOR_NAME, 256, 128),
	ROW(MPI_MAX_ERROR_STRING, 256, 512),
	ROW(MPI_MAX_OBJECT_NAME, 64, 128),
	ROW(MPI_MAX_LIBRARY_VERSION_STRING, 256, 8192),
	ROW(MPI_MAX_PORT_NAME, 1024, 256),
	ROW(MPI_MAX_INFO_KEY, 36, 255),
	ROW(MPI_MAX_INFO_VAL, 256, 1024),
	ROW(MPI_BSEND_OVERHEAD, 128, 96),
};

static bool mixed(void)
{
	for (int i = 1; i < px.world->nsites; i++)
		if (px.world->site[i].flavor != px.world->site[0].flavor)
			return true;
	return false;
}

/* Are a and b, each of one vendor, `times` times this constant? */
static bool is_constant(
	const struct constant *k, unsigned long long a, unsigned long long b, unsigned long long times)
{
	return (a == times * k->openmpi && b == times * k->mpich) ||
	       (b == times * k->openmpi && a == times * k->mpich);
}

/* ": perhaps MPI_MAX_..., which is ...", or nothing. A block may have `members` items. */
static void hint(char *to, size_t cap, unsigned long long a, unsigned long long b, unsigned long long members)
{
	size_t len = 0;

	*to = 0;
	for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
		const struct constant *k = &constants[i];

		if (len < cap && (is_constant(k, a, b, 1) || is_constant(k, a, b, members)))
			len += (size_t)snprintf(to + len, cap - len,
				"%s %s, %llu with Open MPI and %llu with MPICH",
				len ? " or" : ": perhaps a count of", k->name, k->openmpi, k->mpich);
	}
}

char *px_text_truncated(struct px_comm *c, int src, int tag, unsigned long long bytes,
	unsigned long long room, bool collective)
{
	char text[300] = "";

	if (mixed())
		hint(text, sizeof text, bytes, room,
			collective ? (unsigned long long)px_part_count(c, px_part_of(c, src)) : 1);
	if (collective)
		return px_text("%llu bytes came from rank %d where this rank expects %llu%s", bytes, src,
			room, text);
	return px_text("a message of %llu bytes from rank %d with tag %d, the receive has room for %llu%s",
		bytes, src, tag, room, text);
}

/* Once per function: a program that probes for what there is must not fill the terminal. */
static void say_unsupported(const char *name, const char *why)
{
	static const char *said[32]; /* string constants of the wrappers */

	for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
		if (said[i] == name)
			return;
		if (!said[i]) {
			said[i] = name;
			px_log(PX_LOG_ERROR,
				"rank %d: %s is not supported on a communicator that spans sites: %s",
				px.grank, name, why);
			return;
		}
	}
}

int px_unsupported(struct px_comm *c, const char *name, const char *why)
{
	const char *outer = px_function;

	if (!fatal_on(px_raised_on(c)))
		say_unsupported(name, why);
	px_function = name;
	px_raise(c, MPI_ERR_UNSUPPORTED_OPERATION, "not supported on a communicator that spans sites: %s",
		why);
	px_function = outer;
	return MPI_ERR_UNSUPPORTED_OPERATION;
}
