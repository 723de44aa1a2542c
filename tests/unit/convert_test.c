/* convert_test.c: convert.c and floats.c against tests/wire/convert.vec, all pairs of machines; and messages that are converted
 * while they arrive. */
#include "test.h"

#include <stdlib.h>

#include "convert.h"

#define MACHINES 16

static struct machine {
	char name[16];
	struct px_repr r;
} machine[MACHINES];
static int nmachines;

static struct cell {
	uint8_t bytes[16];
	size_t size;
	char mark; /* ~ it rounds, ! it cannot hold the value; or 0 */
} cell[MACHINES];

static void machines_read(char *line)
{
	char *word = strtok(line, " \n");

	while ((word = strtok(NULL, " \n")) && nmachines < MACHINES) {
		struct machine *m = &machine[nmachines++];
		unsigned v[8];
		int truth;

		px_repr_native(&m->r);
		if (sscanf(word, "%15[^:]:%u,%u,%u,%u,%u,%u,%u,%u,%d", m->name, &v[0], &v[1], &v[2], &v[3],
			    &v[4], &v[5], &v[6], &v[7], &truth) != 10)
			printf("# machine not understood: %s\n", word);
		m->r.big_endian = (uint8_t)v[0];
		m->r.size_long = (uint8_t)v[1];
		m->r.size_pointer = (uint8_t)v[2];
		m->r.size_wchar = (uint8_t)v[3];
		m->r.size_long_double = (uint8_t)v[4];
		m->r.long_double_format = (uint8_t)v[5];
		m->r.size_fint = (uint8_t)v[6];
		m->r.size_flogical = (uint8_t)v[7];
		m->r.flogical_true = truth;
	}
}

static int atom_of(const char *name)
{
	static const char *const names[] = {
#define X(up, text) #up,
		PX_ATOMS(X)
#undef X
	};

	for (int a = 0; a < PX_ATOM_COUNT; a++)
		if (strcmp(name, names[a]) == 0)
			return a;
	return -1;
}

static void cell_read(const char *word, struct cell *c)
{
	c->mark = *word == '~' || *word == '!' ? *word++ : 0;
	for (c->size = 0; c->size < sizeof c->bytes && word[0] && word[1]; c->size++, word += 2) {
		unsigned v = 0;

		sscanf(word, "%2x", &v);
		c->bytes[c->size] = (uint8_t)v;
	}
}

/* The next vector of the file: atom and value; false at the end. */
static bool vector_next(FILE *f, int *atom, char *value, size_t cap)
{
	static char line[4096];
	char *word;

	while (fgets(line, sizeof line, f)) {
		if (line[0] == '#')
			continue;
		if (strncmp(line, "machines ", 9) == 0) {
			nmachines = 0;
			machines_read(line);
			continue;
		}
		*atom = atom_of(strtok(line, " \n"));
		snprintf(value, cap, "%s", strtok(NULL, " \n"));
		for (int m = 0; m < nmachines && (word = strtok(NULL, " \n")); m++)
			cell_read(word, &cell[m]);
		return true;
	}
	return false;
}

/* The machines are known whichever tests run. */
__attribute__((constructor)) static void machines_load(void)
{
	FILE *f = fopen("tests/wire/convert.vec", "r");
	char value[80];
	int atom;

	if (f) {
		vector_next(f, &atom, value, sizeof value);
		fclose(f);
	}
}

/* Several at once, at an odd address, so that every loop runs over its end. */
#define TIMES 7

static void one_pair(int atom, const char *value, int a, int b)
{
	const struct px_repr *from = &machine[a].r, *to = &machine[b].r;
	size_t is = cell[a].size, os = cell[b].size;
	uint8_t in[16 * TIMES + 1], out[16 * TIMES + 1], expect[16 * TIMES];
	uint64_t fitting;

	for (size_t i = 0; i < TIMES; i++) {
		memcpy(in + 1 + i * is, cell[a].bytes, is);
		memcpy(expect + i * os, cell[b].bytes, os);
	}
	fitting = px_convert((enum px_atom)atom, from, in + 1, to, out + 1, TIMES);
	if (fitting != (cell[b].mark == '!' ? 0 : TIMES) || memcmp(out + 1, expect, os * TIMES) != 0)
		printf("  %s %s from %s to %s\n", px_atom_name((enum px_atom)atom), value, machine[a].name,
			machine[b].name);
	CHECK_UINT(fitting, cell[b].mark == '!' ? 0 : TIMES);
	CHECK_MEM(out + 1, expect, os * TIMES);
	if (px_convert_same((enum px_atom)atom, from, to))
		CHECK_MEM(cell[a].bytes, cell[b].bytes, os);
	if (is == os) { /* in place */
		CHECK_UINT(px_convert((enum px_atom)atom, from, in + 1, to, in + 1, TIMES), fitting);
		CHECK_MEM(in + 1, expect, os * TIMES);
	}
}

TEST(every_value_goes_from_every_machine_to_every_other)
{
	FILE *f = fopen("tests/wire/convert.vec", "r");
	int atom, vectors = 0;
	char value[80];

	REQUIRE(f != NULL);
	while (vector_next(f, &atom, value, sizeof value)) {
		REQUIRE(atom >= 0);
		vectors++;
		for (int a = 0; a < nmachines; a++) {
			CHECK_UINT(cell[a].size, px_atom_size((enum px_atom)atom, &machine[a].r));
			for (int b = 0; b < nmachines && !cell[a].mark; b++)
				one_pair(atom, value, a, b);
		}
	}
	fclose(f);
	CHECK_INT(nmachines, 10);
	CHECK(vectors > 100);
}

TEST(the_machines_of_the_vectors_are_valid_and_alike_only_themselves)
{
	char text[600];

	for (int a = 0; a < nmachines; a++) {
		CHECK(px_repr_valid(&machine[a].r));
		for (int b = 0; b < nmachines; b++) {
			CHECK(px_repr_alike(&machine[a].r, &machine[b].r) == (a == b));
			CHECK((px_repr_tell(&machine[a].r, &machine[b].r, text, sizeof text)[0] == 0) ==
				(a == b));
		}
	}
	px_repr_tell(&machine[0].r, &machine[2].r, text, sizeof text);
	CHECK(strstr(text, "long has 32 bits, not 64: values beyond 2^31 are errors there") != NULL);
	px_repr_tell(&machine[2].r, &machine[0].r, text, sizeof text);
	CHECK(strstr(text, "errors here") != NULL);
	CHECK(strlen(px_repr_tell(&machine[0].r, &machine[7].r, text, 40)) < 40);
}

/* {byte, long, 2 shorts}, packed, 20 elements, from a big-endian 64-bit machine to a little-endian one of 32 bits. */
#define ELEMENTS 20
#define IN_ONE   13
#define OUT_ONE  9

static void message_make(uint8_t *in, uint8_t *out, int bad)
{
	for (int i = 0; i < ELEMENTS; i++) {
		uint8_t *p = in + i * IN_ONE, *q = out + i * OUT_ONE;

		memset(p, i % 2 ? 0xff : 0, IN_ONE); /* negative longs, too */
		p[0] = q[0] = (uint8_t)i;
		p[7] = q[2] = 0x34;
		p[8] = q[1] = 0x12;
		q[3] = q[4] = i % 2 ? 0xff : 0;
		for (int k = 0; k < 4; k++) {
			p[9 + k] = (uint8_t)(16 * i + k);
			q[5 + (k ^ 1)] = p[9 + k];
		}
		if (i == bad)
			p[1] = 1;
	}
}

static void signature(struct px_sig *s)
{
	memset(s, 0, sizeof *s);
	px_sig_add(s, PX_ATOM_BYTE, 1);
	px_sig_add(s, PX_ATOM_LONG, 1);
	px_sig_add(s, PX_ATOM_INT2, 1);
	px_sig_add(s, PX_ATOM_INT2, 1);
}

TEST(a_message_is_converted_as_it_comes_whatever_the_pieces)
{
	uint8_t in[ELEMENTS * IN_ONE], out[ELEMENTS * OUT_ONE], expect[ELEMENTS * OUT_ONE];
	const struct px_repr *from = &machine[3].r, *to = &machine[2].r;
	struct px_sig s;

	message_make(in, expect, -1);
	signature(&s);
	CHECK_INT(s.n, 3);
	CHECK_UINT(px_sig_size(&s, from), IN_ONE);
	CHECK_UINT(px_sig_size(&s, to), OUT_ONE);
	CHECK(!px_sig_same(&s, from, to) && !px_sig_in_place(&s, from, to) && px_sig_same(&s, to, to));
	for (size_t step = 1; step <= sizeof in; step++) {
		struct px_cursor c;

		memset(out, 0xee, sizeof out);
		px_cursor_init(&c, &s, from, to, ELEMENTS);
		for (size_t have = 0; have < sizeof in; have += step)
			px_cursor_run(&c, in, have, out);
		px_cursor_run(&c, in, sizeof in, out);
		CHECK(c.in == sizeof in && c.out == sizeof out && c.atoms == 4 * ELEMENTS && !c.misfit);
		CHECK_MEM(out, expect, sizeof out);
	}
	px_sig_free(&s);
}

/* {byte, int, 2 doubles, 3 shorts, long double}: each atom has one size here and there, so whole elements take a way of their own. */
TEST(elements_of_simple_atoms_are_converted_as_each_of_them_would_be)
{
	static const struct px_sig_run runs[] = { { 1, PX_ATOM_BYTE }, { 1, PX_ATOM_INT4 },
		{ 2, PX_ATOM_DOUBLE }, { 3, PX_ATOM_INT2 }, { 1, PX_ATOM_LDOUBLE } };
	const struct px_repr *from = &machine[3].r;
	struct px_repr little = machine[3].r;
	uint8_t in[ELEMENTS * 43], out[sizeof in], expect[sizeof in], place[sizeof in];
	struct px_sig s = { 0 };
	struct px_cursor c;
	size_t at = 0;

	little.big_endian = 0;
	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (uint8_t)(7 * i + i / 43);
	for (int r = 0; r < 5; r++)
		px_sig_add(&s, runs[r].atom, runs[r].count);
	REQUIRE(px_sig_size(&s, from) == 43 && px_sig_in_place(&s, from, &little));
	for (int e = 0; e < ELEMENTS; e++)
		for (int r = 0; r < 5; r++)
			for (uint64_t k = 0; k < runs[r].count; k++) {
				px_convert(runs[r].atom, from, in + at, &little, expect + at, 1);
				at += px_atom_size(runs[r].atom, from);
			}
	CHECK_UINT(at, sizeof in);
	for (size_t step = 1; step <= sizeof in; step++) {
		memset(out, 0xee, sizeof out);
		memcpy(place, in, sizeof in);
		px_cursor_init(&c, &s, from, &little, ELEMENTS);
		for (size_t have = 0; have < sizeof in; have += step)
			px_cursor_run(&c, in, have, out);
		px_cursor_run(&c, in, sizeof in, out);
		CHECK(c.in == sizeof in && c.out == sizeof out && c.atoms == 8 * ELEMENTS && c.left == 0);
		CHECK_MEM(out, expect, sizeof out);
		px_cursor_init(&c, &s, from, &little, ELEMENTS);
		px_cursor_run(&c, place, step, place);
		px_cursor_run(&c, place, sizeof place, place);
		CHECK_MEM(place, expect, sizeof place);
	}
	px_cursor_init(&c, &s, from, &little, 3); /* no more than the receiver has room for */
	memset(out, 0xee, sizeof out);
	px_cursor_run(&c, in, sizeof in, out);
	CHECK(c.in == 3 * 43 && c.left == 0 && out[3 * 43] == 0xee);
	px_sig_free(&s);
}

TEST(the_first_value_that_does_not_fit_is_named)
{
	uint8_t in[ELEMENTS * IN_ONE], out[ELEMENTS * OUT_ONE];
	struct px_cursor c;
	struct px_sig s;

	message_make(in, out, 6);
	in[10 * IN_ONE + 1] = 2; /* a later one */
	signature(&s);
	px_cursor_init(&c, &s, &machine[3].r, &machine[2].r, ELEMENTS);
	px_cursor_run(&c, in, 100, out);
	px_cursor_run(&c, in, sizeof in, out);
	CHECK(c.misfit && c.atom == PX_ATOM_LONG);
	CHECK_UINT(c.which, 6 * 4 + 1);
	CHECK_STR(c.value, "72057594037941266");
	CHECK_UINT(c.out, sizeof out);
	px_sig_free(&s);
}

TEST(a_receive_of_fewer_elements_stops_there_and_one_of_more_takes_what_comes)
{
	uint8_t in[ELEMENTS * IN_ONE], out[ELEMENTS * OUT_ONE], expect[ELEMENTS * OUT_ONE];
	struct px_cursor c;
	struct px_sig s;

	message_make(in, expect, -1);
	memset(out, 0xee, sizeof out);
	signature(&s);
	px_cursor_init(&c, &s, &machine[3].r, &machine[2].r, 3);
	px_cursor_run(&c, in, sizeof in, out);
	CHECK(c.in == 3 * IN_ONE && c.out == 3 * OUT_ONE && out[3 * OUT_ONE] == 0xee);
	px_cursor_init(&c, &s, &machine[3].r, &machine[2].r, 1000);
	px_cursor_run(&c, in, 2 * IN_ONE + 1 + 7, out); /* ends within a long */
	CHECK(c.in == 2 * IN_ONE + 1 && c.out == 2 * OUT_ONE + 1);
	px_sig_free(&s);
}

TEST(elements_of_one_kind_are_one_run)
{
	static uint64_t in[5000], out[5000];
	struct px_cursor c;
	struct px_sig s = { 0 };

	for (uint64_t i = 0; i < 5000; i++)
		in[i] = i << 40 | i;
	px_sig_add(&s, PX_ATOM_DOUBLE, 5);
	px_cursor_init(&c, &s, &machine[3].r, &machine[0].r, 1000);
	px_cursor_run(&c, in, 4001, out);
	CHECK_UINT(c.atoms, 500);
	px_cursor_run(&c, in, sizeof in, out);
	CHECK_UINT(c.atoms, 5000);
	for (int i = 0; i < 5000; i++)
		CHECK(out[i] == __builtin_bswap64(in[i]));
	px_cursor_init(&c, &s, &machine[3].r, &machine[0].r, 0);
	px_cursor_run(&c, in, sizeof in, out);
	CHECK_UINT(c.in, 0);
	px_sig_free(&s);
}
