/* wanem_fifo.h: packets that wait, in the order in which they came. */
#ifndef WANEM_FIFO_H
#define WANEM_FIFO_H

#include <stddef.h>
#include <stdint.h>

struct packet {
	struct packet *next;
	int64_t when; /* in the queue: when it came; in the delay line: when it arrives */
	size_t size;
	int to; /* site */
	unsigned char data[];
};

struct fifo {
	struct packet *head, **tail;
	size_t bytes;
};

static size_t held; /* bytes in all of them */

static void fifo_init(struct fifo *f)
{
	f->head = NULL;
	f->tail = &f->head;
	f->bytes = 0;
}

static void fifo_put(struct fifo *f, struct packet *p)
{
	p->next = NULL;
	*f->tail = p;
	f->tail = &p->next;
	f->bytes += p->size;
	held += p->size;
}

static struct packet *fifo_take(struct fifo *f)
{
	struct packet *p = f->head;

	if (!(f->head = p->next))
		f->tail = &f->head;
	f->bytes -= p->size;
	held -= p->size;
	return p;
}

#endif
