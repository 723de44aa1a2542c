/* names.h: questions between the libraries of a world that spans sites, and the names that MPI_Publish_name has given away.
 *
 * Rank 0 keeps the published names; whoever has opened a port (ports.c) is asked to connect to it. A process answers whenever
 * it makes progress (px_server), and never waits there. Questions and answers are messages in a context of their own, short enough to be inline; numbers are little endian:
 *
 *   question   tag 1: 0 what (4)  4 number of the question (4)  8 two strings, each with its final zero
 *              to rank 0: PUBLISH name port, UNPUBLISH name "", LOOKUP name ""; to who has opened a port: CONNECT its number "";
 *              to rank 0: GUESTS how many "": numbers for them in the world map, answered by the string "SITE BASE" (guest.h)
 *   answer     tag 16 + number of the question: 0 error (4)  4 a number (4)  8 a string with its final zero
 *
 * A CONNECT is answered when it is accepted; the number is that of the conversation (ports.c), which has tags from PX_TAG_PORT on.
 */
#ifndef PX_NAMES_H
#define PX_NAMES_H

#include <stdint.h>

#include "match.h"

enum px_question { PX_ASK_PUBLISH = 1, PX_ASK_UNPUBLISH, PX_ASK_LOOKUP, PX_ASK_CONNECT, PX_ASK_GUESTS };
enum px_answer_error { PX_ANSWER_OK, PX_ANSWER_UNKNOWN, PX_ANSWER_TAKEN, PX_ANSWER_CLOSED, PX_ANSWER_MEMORY };

#define PX_SERVICE_MAX 900  /* a service name, without its final zero */
#define PX_PORT_MAX    1024 /* a port, with it */
#define PX_TAG_PORT    0x200000

struct px_answer {
	enum px_answer_error error;
	uint32_t number;
	char text[PX_PORT_MAX];
};

/* px_names_open: after the world has been made; 0 or PX_E... px_names_close: when nobody asks any more. */
int px_names_open(void);
void px_names_close(void);

#define PX_NAMES_CTX                                                                                         \
	8 /* their context: below all that px_ctx_candidate makes, beside that of MPI_COMM_WORLD */
extern struct px_match px_names; /* their queue; its ranks are those of MPI_COMM_WORLD */

/* px_ask: ask another rank and wait for its answer. MPI error code, not raised. */
int px_ask(int dst, enum px_question what, const char *a, const char *b, struct px_answer *answer);
/* px_reply: answer the question that rank dst has given this number. Waits for nothing. */
void px_reply(int dst, uint32_t id, const struct px_answer *answer);

/* px_port_called: in ports.c: rank src asks to connect to port `number` of this process. */
void px_port_called(int src, uint32_t id, uint32_t number);

#endif
