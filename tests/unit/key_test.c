/* key_test.c: the job's key as text, in files that must be private, and in the environment. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "hostfile.h"
#include "key.h"
#include "test.h"

#define DIGITS "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void check_counting(const uint8_t *key)
{
	uint8_t want[PXD_KEY_SIZE];

	for (int i = 0; i < PXD_KEY_SIZE; i++)
		want[i] = (uint8_t)i;
	CHECK_MEM(key, want, sizeof want);
}

TEST(key_becomes_text_and_back)
{
	uint8_t a[PXD_KEY_SIZE], b[PXD_KEY_SIZE];
	char text[PXD_KEY_TEXT];

	CHECK_INT(pxd_key_make(a), 0);
	CHECK_INT(pxd_key_make(b), 0);
	CHECK(memcmp(a, b, sizeof a) != 0);
	pxd_key_text(a, text);
	CHECK_UINT(strlen(text), 64);
	CHECK_INT(pxd_key_parse(text, b), 0);
	CHECK_MEM(b, a, sizeof a);
	pxd_key_wipe(text, sizeof text);
	for (size_t i = 0; i < sizeof text; i++)
		CHECK_INT(text[i], 0);
}

TEST(only_64_digits_are_a_key)
{
	static const char *const bad[] = { "", " ", "00", DIGITS "0", DIGITS "00", DIGITS " x", "x" DIGITS,
		"0x" DIGITS, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1g",
		"00 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1" };
	uint8_t key[PXD_KEY_SIZE];

	memset(key, 7, sizeof key);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_INT(pxd_key_parse(bad[i], key), PX_EINVAL);
	CHECK_INT(key[0], 7); /* written only on success */
	CHECK_INT(pxd_key_parse(" \t\n" DIGITS "\r\n ", key), 0);
	check_counting(key);
	CHECK_INT(pxd_key_parse("000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F", key), 0);
	check_counting(key);
}

static char path[64];

static void file_put(const char *text, size_t n, mode_t mode)
{
	int fd;

	strcpy(path, "/tmp/pacx-key-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || write(fd, text, n) != (ssize_t)n || fchmod(fd, mode) < 0)
		abort();
	close(fd);
}

static void check_file(const char *text, size_t n, mode_t mode, const char *part)
{
	uint8_t key[PXD_KEY_SIZE];
	char why[PXD_WHY] = "";
	int rc;

	file_put(text, n, mode);
	rc = pxd_key_load(path, key, why, sizeof why);
	CHECK_INT(rc, part ? PX_ECONF : 0);
	if (!part)
		check_counting(key);
	if (part && !strstr(why, part))
		CHECK_STR(why, part);
	CHECK(!strstr(why, "0001")); /* the key itself is never said */
	unlink(path);
}

TEST(key_file_must_be_private)
{
	static const mode_t good[] = { 0600, 0400 },
			    bad[] = { 0640, 0604, 0620, 0602, 0644, 0660, 0666, 0610, 0601 };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		check_file(DIGITS "\n", 65, good[i], NULL);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		check_file(DIGITS "\n", 65, bad[i], "chmod 600 '/tmp/pacx-key-");
}

TEST(key_file_must_hold_a_key)
{
	char large[300];

	memset(large, ' ', sizeof large);
	memcpy(large, DIGITS, 64);
	check_file(DIGITS, 64, 0600, NULL);
	check_file("", 0, 0600, "pacxctl keygen");
	check_file(DIGITS "\n" DIGITS "\n", 130, 0600, "pacxctl keygen");
	check_file(DIGITS "\0", 65, 0600, "pacxctl keygen");
	check_file(DIGITS "\n\0\0", 67, 0600, "pacxctl keygen");
	check_file(large, sizeof large, 0600, "pacxctl keygen");
}

TEST(key_file_must_be_a_file_of_ours)
{
	uint8_t key[PXD_KEY_SIZE];
	char why[PXD_WHY] = "";

	CHECK_INT(pxd_key_load("/tmp", key, why, sizeof why), PX_ECONF);
	CHECK(strstr(why, "not a regular file"));
	CHECK_INT(pxd_key_load("/nowhere/key", key, why, sizeof why), PX_ECONF);
	CHECK(strstr(why, "key file '/nowhere/key'"));
	file_put(DIGITS, 64, 0600);
	unlink(path);
	if (mkfifo(path, 0600) == 0) {
		CHECK_INT(pxd_key_load(path, key, why, sizeof why), PX_ECONF);
		CHECK(strstr(why, "not a regular file"));
		unlink(path);
	}
	if (geteuid() == 0) {
		file_put(DIGITS, 64, 0600);
		if (chown(path, 65534, 65534) == 0) {
			CHECK_INT(pxd_key_load(path, key, why, sizeof why), PX_ECONF);
			CHECK(strstr(why, "belongs to user 65534"));
		}
		unlink(path);
	}
}

TEST(key_is_taken_from_environment_then_file_then_hostfile)
{
	struct pxd_site site = { .name = (char[]){ "left" } };
	struct pxd_hosts h = { .nsites = 1, .sites = &site };
	uint8_t key[PXD_KEY_SIZE];
	char why[PXD_WHY] = "", *place;

	unsetenv("PACX_KEY");
	unsetenv("PACX_KEY_FILE");
	CHECK_INT(pxd_key_take(&h, 0, key, why, sizeof why), PX_ECONF);
	CHECK(strstr(why, "site 'left'") && strstr(why, "pacxctl keygen FILE") &&
		strstr(why, "security: none"));

	site.key = (char[]){ "/nowhere/site" };
	CHECK_INT(pxd_key_take(&h, 0, key, why, sizeof why), PX_ECONF);
	CHECK(strstr(why, "/nowhere/site"));
	setenv("PACX_KEY_FILE", "/nowhere/env", 1);
	CHECK_INT(pxd_key_take(&h, 0, key, why, sizeof why), PX_ECONF);
	CHECK(strstr(why, "/nowhere/env"));
	file_put(DIGITS, 64, 0600);
	setenv("PACX_KEY_FILE", path, 1);
	CHECK_INT(pxd_key_take(&h, 0, key, why, sizeof why), 0);
	check_counting(key);
	unlink(path);

	setenv("PACX_KEY", DIGITS, 1);
	place = getenv("PACX_KEY");
	memset(key, 0, sizeof key);
	CHECK_INT(pxd_key_take(&h, 0, key, why, sizeof why), 0);
	check_counting(key);
	CHECK(!getenv("PACX_KEY"));
	for (int i = 0; i < 64; i++)
		CHECK_INT(place[i], 0);
	setenv("PACX_KEY", "0001", 1);
	CHECK_INT(pxd_key_take(&h, 0, key, why, sizeof why), PX_ECONF);
	CHECK(!getenv("PACX_KEY") && !strstr(why, "0001"));
	unsetenv("PACX_KEY_FILE");
}

TEST(job_hash_is_sha256_cut)
{
	static const uint8_t abc[PX_JOBHASH_SIZE] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41,
		0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23 };
	uint8_t hash[PX_JOBHASH_SIZE];

	pxd_jobhash("abc", hash);
	CHECK_MEM(hash, abc, sizeof abc);
}
