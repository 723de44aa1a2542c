/* proof.c: see proof.h. */
#include "proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "endian.h"
#include "err.h"
#include "map.h"

#define STREAMS_MAX                                                                                          \
	65536 /* that are remembered: only who has the key can make them more, and it gains nothing */

int pxd_proof_key(const uint8_t key[PXD_KEY_SIZE], uint8_t door[PXD_KEY_SIZE])
{
	return pxd_key_derive(key, NULL, 0, "pacx1 door", door);
}

/* HMAC-SHA256 of n bytes. */
static bool mac(const uint8_t *door, const uint8_t *in, size_t n, uint8_t out[EVP_MAX_MD_SIZE])
{
	return HMAC(EVP_sha256(), door, PXD_KEY_SIZE, in, n, out, NULL) != NULL;
}

/* Rising in this process, and most likely from one process to the next. */
static uint64_t number_next(void)
{
	static uint64_t last;
	struct timespec t;
	uint64_t now;

	clock_gettime(CLOCK_REALTIME, &t);
	now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	last = now > last ? now : last + 1;
	return last;
}

void pxd_proof_put(const uint8_t *door, const struct px_preamble *p, uint8_t out[PX_PREAMBLE_SIZE])
{
	uint8_t all[EVP_MAX_MD_SIZE];
	struct px_preamble q = *p;

	q.number = door && q.tls ? number_next() : 0;
	memset(q.proof, 0, sizeof q.proof);
	px_preamble_put(&q, out);
	if (door && q.tls && mac(door, out, PX_PREAMBLE_SAID, all))
		memcpy(out + PX_PREAMBLE_SAID, all, PX_PROOF_SIZE);
}

bool pxd_proof_good(const uint8_t door[PXD_KEY_SIZE], const struct px_preamble *p)
{
	uint8_t bytes[PX_PREAMBLE_SIZE], all[EVP_MAX_MD_SIZE];

	px_preamble_put(p, bytes);
	return p->tls && mac(door, bytes, PX_PREAMBLE_SAID, all) &&
	       CRYPTO_memcmp(all, p->proof, PX_PROOF_SIZE) == 0;
}

/* A stream and a direction of dialling: all of a preamble but its number and proof. Nobody without the door key can make two meet. */
static uint64_t stream_of(const uint8_t *door, const struct px_preamble *p)
{
	uint8_t bytes[PX_PREAMBLE_SIZE], all[EVP_MAX_MD_SIZE] = { 0 };
	struct px_preamble q = *p;

	q.number = 0;
	px_preamble_put(&q, bytes);
	mac(door, bytes, PX_PREAMBLE_SAID, all);
	return px_get64(all);
}

bool pxd_proof_new(struct pxd_proof_memory *m, const uint8_t door[PXD_KEY_SIZE], const struct px_preamble *p)
{
	uint64_t stream, *newest;

	if (!pxd_proof_good(door, p))
		return false;
	if (!m->newest)
		m->newest = px_map_new();
	if (!m->newest)
		return false;
	stream = stream_of(door, p);
	newest = px_map_get(m->newest, stream);
	if (!newest && px_map_count(m->newest) < STREAMS_MAX) {
		newest = calloc(1, sizeof *newest);
		if (newest && px_map_put(m->newest, stream, newest) < 0) {
			free(newest);
			newest = NULL;
		}
	}
	if (!newest || p->number <= *newest)
		return false;
	*newest = p->number;
	return true;
}

static void number_free(uint64_t key, void *value, void *arg)
{
	(void)key;
	(void)arg;
	free(value);
}

void pxd_proof_forget(struct pxd_proof_memory *m)
{
	if (m->newest)
		px_map_each(m->newest, number_free, NULL);
	px_map_free(m->newest);
	m->newest = NULL;
}
