/* key_test.c: the job's key as text, in a file, in the environment. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "hostfile.h"
#include "key.h"
#include "test.h"

static char dir[64], path[96];
static const char text[] = "00112233445566778899aabbccddeeff0123456789abcdefFEDCBA9876543210";

static void write_file(const char *data, size_t n, mode_t mode)
{
	FILE *f = fopen(path, "wb");

	if (!CHECK(f))
		return;
	fwrite(data, 1, n, f);
	fclose(f);
	CHECK_INT(chmod(path, mode), 0);
}

/* Each test of files has a directory of its own. */
static void dir_make(void)
{
	strcpy(dir, "/tmp/pacx-key-XXXXXX");
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/key", dir);
}

static void dir_drop(void)
{
	unlink(path);
	CHECK_INT(rmdir(dir), 0);
}

TEST(keys_are_random)
{
	uint8_t a[PXD_KEY_SIZE] = { 0 }, b[PXD_KEY_SIZE] = { 0 }, zero[PXD_KEY_SIZE] = { 0 };

	REQUIRE_INT(pxd_key_make(a), 0);
	REQUIRE_INT(pxd_key_make(b), 0);
	CHECK(memcmp(a, b, sizeof a) != 0);
	CHECK(memcmp(a, zero, sizeof a) != 0);
	pxd_key_wipe(a, sizeof a);
	CHECK_MEM(a, zero, sizeof a);
}

TEST(text_of_a_key_reads_back)
{
	for (int i = 0; i < 100; i++) {
		uint8_t a[PXD_KEY_SIZE], b[PXD_KEY_SIZE];
		char t[PXD_KEY_TEXT], spaced[PXD_KEY_TEXT + 10];

		REQUIRE_INT(pxd_key_make(a), 0);
		pxd_key_text(a, t);
		CHECK_UINT(strlen(t), 2 * PXD_KEY_SIZE);
		REQUIRE_INT(pxd_key_parse(t, b), 0);
		CHECK_MEM(a, b, sizeof a);
		snprintf(spaced, sizeof spaced, " \t%s\r\n\n", t);
		memset(b, 0, sizeof b);
		REQUIRE_INT(pxd_key_parse(spaced, b), 0);
		CHECK_MEM(a, b, sizeof a);
	}
}

TEST(what_is_no_key_is_refused)
{
	uint8_t key[PXD_KEY_SIZE] = { 7 };
	char t[PXD_KEY_TEXT + 4];

	CHECK_INT(pxd_key_parse("", key), PX_EINVAL);
	CHECK_INT(pxd_key_parse("  \n", key), PX_EINVAL);
	for (size_t n = 1; n < sizeof text - 1; n++) {
		snprintf(t, sizeof t, "%.*s", (int)n, text);
		CHECK_INT(pxd_key_parse(t, key), PX_EINVAL);
		snprintf(t, sizeof t, "%s", text);
		for (const char *c = "gG/:@`-x\n "; *c; c++) {
			t[n] = *c;
			CHECK_INT(pxd_key_parse(t, key), PX_EINVAL);
		}
	}
	snprintf(t, sizeof t, "%s0", text);
	CHECK_INT(pxd_key_parse(t, key), PX_EINVAL);
	snprintf(t, sizeof t, "%s x", text);
	CHECK_INT(pxd_key_parse(t, key), PX_EINVAL);
	snprintf(t, sizeof t, "0x%.62s", text);
	CHECK_INT(pxd_key_parse(t, key), PX_EINVAL);
	CHECK_INT(key[0], 7); /* written on success only */
}

TEST(file_of_its_owner_only_is_taken)
{
	uint8_t key[PXD_KEY_SIZE], want[PXD_KEY_SIZE];
	char why[512] = "";

	REQUIRE_INT(pxd_key_parse(text, want), 0);
	dir_make();
	for (int i = 0; i < 2; i++) {
		write_file(text, sizeof text - 1, i ? 0400 : 0600);
		memset(key, 0, sizeof key);
		CHECK_INT(pxd_key_load(path, key, why, sizeof why), 0);
		CHECK_MEM(key, want, sizeof key);
	}
	dir_drop();
}

TEST(file_that_others_may_use_is_refused)
{
	static const mode_t bad[] = { 0644, 0640, 0604, 0620, 0602, 0610, 0601, 0666, 0777, 0440 };
	uint8_t key[PXD_KEY_SIZE] = { 7 };
	char why[512];

	dir_make();
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		write_file(text, sizeof text - 1, bad[i]);
		why[0] = '\0';
		CHECK_INT(pxd_key_load(path, key, why, sizeof why), PX_ECONF);
		CHECK(strstr(why, "chmod 600") && strstr(why, path));
		CHECK(!strstr(why, "00112233")); /* never shown */
	}
	CHECK_INT(key[0], 7);
	dir_drop();
}

TEST(file_of_somebody_else_is_refused)
{
	uint8_t key[PXD_KEY_SIZE];
	char why[512] = "";

	if (geteuid() != 0)
		SKIP("only root can give a file away");
	dir_make();
	write_file(text, sizeof text - 1, 0600);
	if (chown(path, 12345, (gid_t)-1) == 0) {
		CHECK_INT(pxd_key_load(path, key, why, sizeof why), PX_ECONF);
		CHECK(strstr(why, "12345") && strstr(why, path));
	}
	dir_drop();
}

TEST(other_files_are_refused)
{
	static const char nul[] = "00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210\0";
	uint8_t key[PXD_KEY_SIZE];
	char why[512], big[4096];

	dir_make();
	CHECK_INT(pxd_key_load(path, key, why, sizeof why), PX_ECONF);
	CHECK(strstr(why, strerror(ENOENT)));
	CHECK_INT(pxd_key_load(dir, key, why, sizeof why), PX_ECONF);
	CHECK(strstr(why, "regular"));
	CHECK_INT(mkfifo(path, 0600), 0);
	CHECK_INT(pxd_key_load(path, key, why, sizeof why), PX_ECONF); /* does not wait for a writer */
	CHECK(strstr(why, "regular"));
	unlink(path);
	write_file("", 0, 0600);
	CHECK_INT(pxd_key_load(path, key, why, sizeof why), PX_ECONF);
	CHECK(strstr(why, "keygen"));
	write_file(nul, sizeof nul, 0600);
	CHECK_INT(pxd_key_load(path, key, why, sizeof why), PX_ECONF);
	memset(big, ' ', sizeof big);
	memcpy(big, text, sizeof text - 1);
	write_file(big, sizeof big, 0600);
	CHECK_INT(pxd_key_load(path, key, why, sizeof why), PX_ECONF);
	CHECK(!strstr(why, "00112233"));
	dir_drop();
}

TEST(environment_comes_before_the_hostfile)
{
	struct pxd_site sites[2] = { { .name = "left" }, { .name = "right" } };
	struct pxd_hosts h = { .nsites = 2, .sites = sites };
	uint8_t key[PXD_KEY_SIZE], want[PXD_KEY_SIZE];
	char why[900] = "", missing[120];

	REQUIRE_INT(pxd_key_parse(text, want), 0);
	dir_make();
	write_file(text, sizeof text - 1, 0600);
	snprintf(missing, sizeof missing, "%s-missing", path);
	unsetenv("PACX_KEY");
	sites[1].key = path;
	unsetenv("PACX_KEY_FILE");
	CHECK_INT(pxd_key_take(&h, 1, key, why, sizeof why), 0);
	CHECK_MEM(key, want, sizeof key);
	setenv("PACX_KEY_FILE", missing, 1);
	CHECK_INT(pxd_key_take(&h, 1, key, why, sizeof why), PX_ECONF);
	CHECK(strstr(why, missing));
	setenv("PACX_KEY_FILE", path, 1);
	sites[1].key = missing;
	CHECK_INT(pxd_key_take(&h, 1, key, why, sizeof why), 0);
	setenv("PACX_KEY_FILE", missing, 1);
	setenv("PACX_KEY", text, 1);
	memset(key, 0, sizeof key);
	CHECK_INT(pxd_key_take(&h, 1, key, why, sizeof why), 0);
	CHECK_MEM(key, want, sizeof key);
	unsetenv("PACX_KEY_FILE");
	dir_drop();
}

TEST(key_of_the_environment_is_wiped)
{
	struct pxd_site site = { .name = "left" };
	struct pxd_hosts h = { .nsites = 1, .sites = &site };
	static char variable[] = "PACX_KEY=00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210";
	uint8_t key[PXD_KEY_SIZE];
	char why[900] = "";

	REQUIRE_INT(putenv(variable), 0); /* the environment holds our own bytes */
	CHECK_INT(pxd_key_take(&h, 0, key, why, sizeof why), 0);
	CHECK(getenv("PACX_KEY") == NULL);
	for (size_t i = 9; i < sizeof variable - 1; i++)
		CHECK_INT(variable[i], 0);
	/* One that is no key is wiped, too, and not shown. */
	strcpy(variable, "PACX_KEY=secretsecret");
	REQUIRE_INT(putenv(variable), 0);
	CHECK_INT(pxd_key_take(&h, 0, key, why, sizeof why), PX_ECONF);
	CHECK(strstr(why, "PACX_KEY") && !strstr(why, "secret"));
	CHECK(getenv("PACX_KEY") == NULL && variable[9] == 0);
}

TEST(site_without_a_key_is_told_what_to_do)
{
	struct pxd_site site = { .name = "left" };
	struct pxd_hosts h = { .nsites = 1, .sites = &site };
	uint8_t key[PXD_KEY_SIZE];
	char why[900] = "";

	unsetenv("PACX_KEY");
	unsetenv("PACX_KEY_FILE");
	CHECK_INT(pxd_key_take(&h, 0, key, why, sizeof why), PX_ECONF);
	CHECK(strstr(why, "'left'") && strstr(why, "pacxctl keygen") && strstr(why, "security: none"));
	CHECK_INT(pxd_key_take(&h, -1, key, why, sizeof why), PX_ECONF);
	CHECK_INT(pxd_key_take(&h, 5, key, why, sizeof why), PX_ECONF);
}

TEST(job_hash_is_the_beginning_of_sha256)
{
	static const uint8_t abc[PX_JOBHASH_SIZE] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41,
		0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23 };
	uint8_t h[PX_JOBHASH_SIZE];

	pxd_jobhash("abc", h);
	CHECK_MEM(h, abc, sizeof h);
}
