/* sched_steps.h: what a schedule consists of. Built by schedule.c, run by sched_run.c; nobody else looks inside. */
#ifndef PX_SCHED_STEPS_H
#define PX_SCHED_STEPS_H

#include <stdint.h>

#include "request.h"
#include "schedule.h"

enum px_step_kind { PX_STEP_SEND, PX_STEP_RECV, PX_STEP_NATIVE, PX_STEP_CALL };

/* How native steps are made: schedule.h. */
enum px_way { PX_WAY_MESSAGES, PX_WAY_NONBLOCKING, PX_WAY_BLOCKING };

struct px_step {
	enum px_step_kind kind;
	int until;    /* it waits for all steps before this one, */
	int after[2]; /* and for these, -1 = none */
	int sub;
	int nth;         /* NATIVE: how many there are before it */
	uint32_t behind; /* NATIVE: duplications called before it on the communicator */
	bool started, done;
	bool exact; /* RECV: fewer bytes are an error, too. SEND: of a schedule that has failed, it is so many */
	uint16_t depth;         /* wide-area messages in sequence up to here */
	struct px_req req;      /* SEND, RECV */
	struct px_call call;    /* NATIVE */
	MPI_Request native;     /* NONBLOCKING */
	struct px_sched *local; /* MESSAGES: its steps */
	int (*fn)(struct px_sched *, void *);
	void *arg;
};

struct px_sched {
	struct px_comm *c;
	enum px_coll op;
	enum px_way way;
	struct px_req own; /* for blocking calls */
	struct px_req *req;
	struct px_step *step;
	int nsteps, cap;
	int until;    /* building: the steps added from now on wait for all before this one, */
	int after[2]; /* or, the next one only, for these */
	int sub;
	const struct px_sig *sig; /* px_sched_packed */
	int first;                /* running: the first step that is not done */
	int natives;              /* native steps; running: so many have started */
	bool within;              /* a blocking native call is under way */
	uint32_t seq;
	uint32_t dups; /* native duplications among its steps */
	int error;
	char why[200]; /* text of the error */
	struct px_sched_temp *temps;
	struct {
		char *at; /* of the last long block of temps, what is left */
		size_t left, size;
		bool used; /* not zeroed */
	} block;
};

/* px_sched_free: one that does not run. */
void px_sched_free(struct px_sched *s);

#endif
