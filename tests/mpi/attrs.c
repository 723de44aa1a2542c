/*
 * attrs - predefined attributes, keyvals with copy and delete callbacks, what dup copies, what free deletes, attributes
 * on WORLD, and the delete callbacks of SELF which MPI_Finalize calls first, in reverse order, while MPI still works.
 */
#include "check.h"

static int copies, deletes, deny, at_end, world_at_end, failed_at_end;
static MPI_Comm whose = MPI_COMM_NULL; /* the callbacks are to see this one; MPI_COMM_NULL: any */

static int copy_fn(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
	(void)key;
	CHECK(c != MPI_COMM_NULL && (whose == MPI_COMM_NULL || c == whose));
	CHECK(extra == &copies);
	copies++;
	*(void **)out = (char *)in + 1;
	*flag = !deny;
	return MPI_SUCCESS;
}

static int delete_fn(MPI_Comm c, int key, void *value, void *extra)
{
	(void)key, (void)value;
	CHECK(whose == MPI_COMM_NULL || c == whose);
	CHECK(extra == &copies);
	deletes++;
	return MPI_SUCCESS;
}

static int refuse_fn(MPI_Comm c, int key, void *value, void *extra)
{
	(void)c, (void)key, (void)value, (void)extra;
	return MPI_ERR_OTHER;
}

/* Of a communicator that is being freed, which is still what it was; the value: whether it may be. */
static int last_fn(MPI_Comm c, int key, void *value, void *extra)
{
	int r = -1, n = -1;

	(void)key, (void)extra;
	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &n);
	CHECK_EQ(r, chk_rank);
	CHECK_EQ(n, chk_size);
	return *(int *)value ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static void freed(void)
{
	int key, may = 0, class = MPI_SUCCESS, sum = 0, rc;
	MPI_Comm c, was;

	MPI_Comm_dup(MPI_COMM_WORLD, &c);
	was = c;
	MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* which MPICH takes */
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_fn, &key, NULL);
	MPI_Comm_set_attr(c, key, &may);
	rc = MPI_Comm_free(&c);
	if (rc != MPI_SUCCESS)
		MPI_Error_class(rc, &class);
	CHECK_EQ(class, MPI_ERR_OTHER);
	CHECK(c == was);
	if (c != MPI_COMM_NULL) { /* it is still there */
		MPI_Allreduce(&chk_rank, &sum, 1, MPI_INT, MPI_SUM, c);
		CHECK_EQ(sum, chk_size * (chk_size - 1) / 2);
		may = 1;
		CHECK_EQ(MPI_Comm_free(&c), MPI_SUCCESS);
		CHECK(c == MPI_COMM_NULL);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_free_keyval(&key);
}

/* Called by MPI_Finalize, last set first; communication is still allowed, and WORLD is still the whole world. */
static int end_fn(MPI_Comm c, int key, void *value, void *extra)
{
	int r = -1, n = -1, fin = 1, got = -1;

	(void)key, (void)extra;
	if (c != MPI_COMM_SELF || (int)(intptr_t)value != 2 - at_end++)
		failed_at_end = 1;
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	MPI_Finalized(&fin);
	MPI_Sendrecv(&r, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, c, MPI_STATUS_IGNORE);
	if (r != chk_rank || n != chk_size || fin || got != r)
		failed_at_end = 1;
	return MPI_SUCCESS;
}

static int world_end_fn(MPI_Comm c, int key, void *value, void *extra)
{
	(void)key, (void)value, (void)extra;
	world_at_end++;
	if (c != MPI_COMM_WORLD)
		failed_at_end = 1;
	return MPI_SUCCESS;
}

static void *get(MPI_Comm c, int key)
{
	void *v = NULL;
	int flag = 0;

	MPI_Comm_get_attr(c, key, &v, &flag);
	return flag ? v : NULL;
}

/* By the functions of MPI-1, where the MPI has them. */
static void old_keyval(void)
{
#if MPI_VERSION < 5
	int key, was = deletes;

	MPI_Keyval_create(copy_fn, delete_fn, &key, &copies);
	MPI_Attr_put(MPI_COMM_WORLD, key, &deny);
	CHECK(get(MPI_COMM_WORLD, key) == &deny);
	MPI_Attr_delete(MPI_COMM_WORLD, key);
	CHECK_EQ(deletes, was + 1);
	MPI_Keyval_free(&key);
#endif
}

int main(int argc, char **argv)
{
	int key, key2, key3, end, dup_key, flag, *ub, got = -1, k;
	static char data[8];
	MPI_Comm d, d2, s;
	void *v;

	chk_begin(&argc, &argv, "attrs", 1);
	/* predefined */
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &ub, &flag);
	CHECK(flag && *ub >= 32767);
	if (flag) {
		int right = (chk_rank + 1) % chk_size, left = (chk_rank + chk_size - 1) % chk_size,
		    most = *ub;
		MPI_Status st;

		/* every rank sees the same limit, and the highest tag works */
		MPI_Sendrecv(&most, 1, MPI_INT, right, 8, &got, 1, MPI_INT, left, 8, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE);
		CHECK_EQ(got, most);
		MPI_Sendrecv(
			&most, 1, MPI_INT, right, most, &got, 1, MPI_INT, left, most, MPI_COMM_WORLD, &st);
		CHECK_STATUS(&st, left, most, MPI_INT, 1);
	}
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &v, &flag);
	CHECK(!flag || *(int *)v == 0 || *(int *)v == 1);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &v, &flag);
	CHECK(!flag || *(int *)v > 0);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &v, &flag);
	CHECK(!flag || *(int *)v >= 0);
	/* alike everywhere, and on a duplicate */
	for (int i = 0; i < 2; i++) {
		int theirs = -5,
		    mine = (MPI_Comm_get_attr(MPI_COMM_WORLD, i ? MPI_UNIVERSE_SIZE : MPI_APPNUM, &v, &flag),
				   flag)
				   ? *(int *)v
				   : -1;

		MPI_Sendrecv(&mine, 1, MPI_INT, (chk_rank + 1) % chk_size, 9, &theirs, 1, MPI_INT,
			(chk_rank + chk_size - 1) % chk_size, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK_EQ(theirs, mine);
	}
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &v, &flag);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &v, &flag);

	/* own keys on WORLD and on a dup */
	MPI_Comm_create_keyval(copy_fn, delete_fn, &key, &copies);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key2, NULL);
	MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &dup_key, NULL);
	CHECK(key != key2 && key != dup_key && key != MPI_KEYVAL_INVALID);
	CHECK(get(MPI_COMM_WORLD, key) == NULL);
	MPI_Comm_set_attr(MPI_COMM_WORLD, key, data);
	MPI_Comm_set_attr(MPI_COMM_WORLD, key2, data + 3);
	MPI_Comm_set_attr(MPI_COMM_WORLD, dup_key, data + 4);
	CHECK(get(MPI_COMM_WORLD, key) == data);
	CHECK(get(MPI_COMM_SELF, key) == NULL);
	whose = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &d);
	CHECK_EQ(copies, 1);
	CHECK(get(d, key) == data + 1);
	CHECK(get(d, key2) == NULL);
	CHECK(get(d, dup_key) == data + 4);
	whose = d;
	MPI_Comm_dup(d, &d2);
	CHECK_EQ(copies, 2);
	CHECK(get(d2, key) == data + 2);
	CHECK(get(MPI_COMM_WORLD, key) == data);
	MPI_Comm_split(d, 0, 0, &s); /* split copies nothing */
	CHECK_EQ(copies, 2);
	CHECK(get(s, key) == NULL && get(s, dup_key) == NULL);
	/* setting again deletes the old value; delete deletes; free deletes */
	MPI_Comm_set_attr(d, key, data + 5);
	CHECK_EQ(deletes, 1);
	CHECK(get(d, key) == data + 5);
	MPI_Comm_delete_attr(d, key);
	CHECK_EQ(deletes, 2);
	CHECK(get(d, key) == NULL);
	whose = MPI_COMM_NULL; /* of one that is being freed, what vendors say differs */
	MPI_Comm_free(&d2);
	CHECK_EQ(deletes, 3);
	MPI_Comm_free(&d);
	CHECK_EQ(deletes, 3);
	deny = 1; /* the copy callback may say no */
	MPI_Comm_dup(MPI_COMM_WORLD, &d);
	CHECK_EQ(copies, 3);
	CHECK(get(d, key) == NULL);
	MPI_Comm_free(&d);
	CHECK_EQ(deletes, 3);
	deny = 0;
	/* the key is freed, but lives until its last attribute is gone */
	k = key;
	MPI_Comm_free_keyval(&key);
	CHECK_EQ(key, MPI_KEYVAL_INVALID);
	CHECK(get(MPI_COMM_WORLD, k) == data);
	whose = MPI_COMM_WORLD;
	MPI_Comm_delete_attr(MPI_COMM_WORLD, k);
	CHECK_EQ(deletes, 4);
	old_keyval();
	whose = MPI_COMM_NULL;
	MPI_Comm_delete_attr(MPI_COMM_WORLD, key2);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, dup_key);
	MPI_Comm_free_keyval(&key2);
	MPI_Comm_free_keyval(&dup_key);
	/* a delete callback that fails keeps the attribute */
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse_fn, &key3, NULL);
	MPI_Comm_set_errhandler(s, MPI_ERRORS_RETURN);
	MPI_Comm_set_attr(s, key3, data);
	CHECK(MPI_Comm_delete_attr(s, key3) != MPI_SUCCESS);
	CHECK(get(s, key3) == data);

	/* at the end */
	for (int i = 0; i < 3; i++) {
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_fn, &end, NULL);
		MPI_Comm_set_attr(MPI_COMM_SELF, end, (void *)(intptr_t)i);
		MPI_Comm_free_keyval(&end);
	}
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, world_end_fn, &end, NULL);
	MPI_Comm_set_attr(MPI_COMM_WORLD, end, &got);
	freed();
	got = chk_end();
	if (at_end != 3 || world_at_end != 1 || failed_at_end) {
		fprintf(stderr,
			"attrs: rank %d: %d of 3 delete callbacks of SELF, %d of 1 of WORLD in "
			"MPI_Finalize%s\n",
			chk_rank, at_end, world_at_end, failed_at_end ? ", with wrong values" : "");
		got = 1;
	}
	return got;
}
