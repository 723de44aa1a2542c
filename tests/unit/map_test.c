/* map_test.c: the map against a plain array, and with readers beside the writer. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "err.h"
#include "map.h"
#include "test.h"

#define KEYS 2000

static char value[KEYS + 1];

TEST(map_holds_any_key)
{
	static const uint64_t key[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 32, 0x44000000 };
	struct px_map *m = px_map_new();

	REQUIRE(m != NULL);
	for (size_t i = 0; i < 6; i++) {
		CHECK(px_map_get(m, key[i]) == NULL);
		CHECK(px_map_del(m, key[i]) == NULL);
		CHECK_INT(px_map_put(m, key[i], &value[i]), 0);
	}
	for (size_t i = 0; i < 6; i++)
		CHECK(px_map_get(m, key[i]) == &value[i]);
	CHECK_INT(px_map_put(m, 0, NULL), PX_EINVAL);
	CHECK_INT(px_map_put(m, 0, &value[9]), 0); /* replaces */
	CHECK(px_map_get(m, 0) == &value[9]);
	CHECK_UINT(px_map_count(m), 6);
	CHECK(px_map_del(m, 0) == &value[9]);
	CHECK(px_map_get(m, 0) == NULL);
	CHECK_UINT(px_map_count(m), 5);
	px_map_free(m);
	px_map_free(NULL);
}

static uint64_t spread(size_t i)
{
	return i % 3 == 0 ? i : i % 3 == 1 ? (uint64_t)i << 48 : (uint64_t)i * 0x10000001u;
}

static void count_one(uint64_t key, void *v, void *arg)
{
	size_t i = (size_t)((char *)v - value);

	CHECK_UINT(key, spread(i));
	++*(size_t *)arg;
}

TEST(map_agrees_with_a_plain_array)
{
	struct px_map *m = px_map_new();
	bool there[KEYS] = { false };
	size_t count = 0, seen = 0;

	REQUIRE(m != NULL);
	for (int n = 0; n < 200000; n++) {
		size_t i = test_random() % KEYS;

		if (test_random() % 2) {
			REQUIRE_INT(px_map_put(m, spread(i), &value[i]), 0);
			count += !there[i];
			there[i] = true;
		} else {
			REQUIRE(px_map_del(m, spread(i)) == (there[i] ? &value[i] : NULL));
			count -= there[i];
			there[i] = false;
		}
		i = test_random() % KEYS;
		REQUIRE(px_map_get(m, spread(i)) == (there[i] ? &value[i] : NULL));
		REQUIRE(px_map_count(m) == count);
	}
	px_map_each(m, count_one, &seen);
	CHECK_UINT(seen, count);
	px_map_free(m);
}

static void delete_it(uint64_t key, void *v, void *arg)
{
	CHECK(px_map_del(arg, key) == v);
}

TEST(each_may_delete)
{
	struct px_map *m = px_map_new();

	REQUIRE(m != NULL);
	for (size_t i = 0; i < 500; i++)
		REQUIRE_INT(px_map_put(m, i, &value[i]), 0);
	px_map_each(m, delete_it, m);
	CHECK_UINT(px_map_count(m), 0);
	px_map_free(m);
}

/* Numbers that come and go (acknowledgements) must not make it grow; this would be 100 MB of tables. */
TEST(passing_numbers_do_not_use_memory)
{
	struct px_map *m = px_map_new();

	REQUIRE(m != NULL);
	for (uint64_t n = 0; n < 3000000; n++) {
		REQUIRE_INT(px_map_put(m, n, &value[n % KEYS]), 0);
		if (n >= 10)
			REQUIRE(px_map_del(m, n - 10) == &value[(n - 10) % KEYS]);
	}
	CHECK_UINT(px_map_count(m), 10);
	px_map_free(m);
}

struct shared {
	struct px_map *m;
	_Atomic bool stop;
	_Atomic unsigned long gets, wrong;
};

/* Even keys below 200 are always there, odd ones never; all others come and go but have one value only. */
static void *reader(void *arg)
{
	struct shared *s = arg;
	unsigned long gets = 0, wrong = 0;
	uint64_t i = 0;

	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		void *v;

		i = (i + 7919) % KEYS;
		v = px_map_get(s->m, i);
		if (i < 200)
			wrong += v != (i % 2 ? NULL : &value[i]);
		else
			wrong += v && v != &value[i];
		gets++;
	}
	atomic_fetch_add(&s->gets, gets);
	atomic_fetch_add(&s->wrong, wrong);
	return NULL;
}

TEST(readers_need_no_lock)
{
	struct shared s = { .m = px_map_new() };
	pthread_t thread[2];

	REQUIRE(s.m != NULL);
	for (uint64_t i = 0; i < 200; i += 2)
		REQUIRE_INT(px_map_put(s.m, i, &value[i]), 0);
	for (int i = 0; i < 2; i++)
		REQUIRE_INT(pthread_create(&thread[i], NULL, reader, &s), 0);
	for (int n = 0; n < 300000; n++) {
		uint64_t i = 200 + test_random() % (n < 150000 ? 100 : KEYS - 200);

		if (test_random() % 4)
			px_map_del(s.m, i);
		else
			CHECK_INT(px_map_put(s.m, i, &value[i]), 0);
		if (n % 16 == 0) { /* keys never seen before: tables are moved often */
			px_map_put(s.m, KEYS + (uint64_t)n, &value[KEYS]);
			px_map_del(s.m, KEYS + (uint64_t)n);
		}
	}
	atomic_store(&s.stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CHECK_UINT(atomic_load(&s.wrong), 0);
	CHECK(atomic_load(&s.gets) > 0);
	px_map_free(s.m);
}

static void *reader_of_few(void *arg)
{
	struct shared *s = arg;
	unsigned long gets = 0, wrong = 0;

	for (; !atomic_load_explicit(&s->stop, memory_order_relaxed); gets++)
		wrong += px_map_get(s->m, gets % 12) != &value[gets % 12];
	atomic_fetch_add(&s->gets, gets);
	atomic_fetch_add(&s->wrong, wrong);
	return NULL;
}

/* Twelve keys stay while others pass so fast that readers are often in a table that is wiped. */
TEST(readers_notice_a_wiped_table)
{
	struct shared s = { .m = px_map_new() };
	pthread_t thread[3];

	REQUIRE(s.m != NULL);
	for (uint64_t i = 0; i < 12; i++)
		REQUIRE_INT(px_map_put(s.m, i, &value[i]), 0);
	for (int i = 0; i < 3; i++)
		REQUIRE_INT(pthread_create(&thread[i], NULL, reader_of_few, &s), 0);
	for (uint64_t n = 1000; n < 1500000; n++) {
		px_map_put(s.m, n, &value[KEYS]);
		px_map_del(s.m, n);
	}
	atomic_store(&s.stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	CHECK_UINT(atomic_load(&s.wrong), 0);
	px_map_free(s.m);
}
