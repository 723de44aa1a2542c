/* held.h: messages on their way out of this rank: when each may begin, and what is held back for whom.
 *
 * Owns the state of every destination and the numbers of messages. px_channel_send and px_channel_sent (channel.h) are its face to the
 * rest; these are called by channel.c, for frames that have come. Never waits.
 */
#ifndef PX_HELD_H
#define PX_HELD_H

#include <stdint.h>

int px_held_open(void); /* after px.map is set; 0 or PX_E... */

/* px_held_credit: the out-daemon has let envelopes to dst leave that weigh n (px_envelope_weight). */
void px_held_credit(int dst, uint64_t n);
/* px_held_pulled: the receiver of message `msg` wants its payload. */
void px_held_pulled(uint32_t msg);
/* px_held_acked: the receiver of synchronous message `msg` has matched it. */
void px_held_acked(uint32_t msg);

#endif
