/* Start commands: words get through one, two and three shells unharmed, wherever the placeholder stands. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#include "../../daemon/pacxrun/quote.c"

/* Words with everything a shell might touch. */
static char *odd[] = { "a b", "", "it's", "\"q\"", "$HOME", "`id`", "back\\slash", "new\nline", "*", "~",
	"!x", "#", "a=b c", "{x,y}", ";&|<>()", "\t", "-n", "caf\xc3\xa9", NULL };

/* What the shell that runs `command` prints: each argument on "<...>" lines. */
static char *shell_output(const char *command)
{
	static char out[65536];
	FILE *p = popen(command, "r");
	size_t n = p ? fread(out, 1, sizeof out - 1, p) : 0;

	out[n] = '\0';
	if (p)
		CHECK_INT(pclose(p), 0);
	return out;
}

static const char *odd_expected(void)
{
	static char text[4096];

	text[0] = '\0';
	for (int i = 0; odd[i]; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "<%s>\n", odd[i]);
	return text;
}

static char *fill(const char *template)
{
	static char *one[] = { "2", NULL };
	const struct pxd_hole holes[] = { { "args", odd }, { "ranks", one } };
	char bad[PXD_HOLE_MAX], *out = NULL;
	const char *near = NULL;

	CHECK_INT(pxd_template_fill(template, holes, 2, &out, bad, &near), 0);
	return out;
}

/* A stand-in for ssh, first in PATH: joins its arguments behind the host and lets another shell read them. */
static void fake_ssh(void)
{
	static char dir[] = "/tmp/quote-test-XXXXXX";
	static bool done;
	char path[64], env[512];
	FILE *f;

	if (done)
		return;
	done = true;
	REQUIRE(mkdtemp(dir) != NULL);
	snprintf(path, sizeof path, "%s/ssh", dir);
	f = fopen(path, "w");
	REQUIRE(f != NULL);
	fputs("#!/bin/sh\nshift\nexec /bin/sh -c \"$*\"\n", f);
	fclose(f);
	REQUIRE(system("chmod +x /tmp/quote-test-*/ssh") == 0);
	snprintf(env, sizeof env, "%s:%s", dir, getenv("PATH"));
	setenv("PATH", env, 1);
}

static void fake_ssh_remove(void)
{
	CHECK_INT(system("rm -f /tmp/quote-test-*/ssh; rmdir /tmp/quote-test-*"), 0);
}

TEST(words_survive_every_kind_of_place)
{
	static const char *const templates[] = {
		"printf '<%s>\\n' {args}",
		"exec printf '<%s>\\n' {args}",
		"ssh host printf \"'<%s>\\n'\" {args}",
		"true; ssh host printf \"'<%s>\\n'\" {args} </dev/null",
		"ssh gate ssh node printf \"\\\"'<%s>\\n'\\\"\" {args}",
		"ssh host 'cd / && printf \"<%s>\\n\" {args}'",
		"ssh host \"printf '<%s>\\n' {args}\"",
		"sh -c 'printf \"<%s>\\n\" {args}'",
		"sh -c \"printf '<%s>\\n' {args}\"",
		"env A=1 ssh $(echo host) printf \"'<%s>\\n'\" {args}",
		"ssh host true && printf '<%s>\\n' {args}",
	};

	fake_ssh();
	for (size_t i = 0; i < sizeof templates / sizeof templates[0]; i++) {
		char *command = fill(templates[i]);

		REQUIRE(command != NULL);
		if (!CHECK_STR(shell_output(command), odd_expected()))
			printf("  template: %s\n", templates[i]);
		free(command);
	}
	fake_ssh_remove();
}

TEST(remote_shells_are_seen)
{
	CHECK(pxd_template_remote("ssh host x"));
	CHECK(pxd_template_remote("/usr/bin/ssh -p 22 host x"));
	CHECK(pxd_template_remote("cd /x && rsh host x"));
	CHECK(!pxd_template_remote("mpirun ./ssh-client x"));
	CHECK(!pxd_template_remote("echo 'ssh host'"));
	CHECK(!pxd_template_remote(""));
}

TEST(ends_of_remote_shell_words_are_found)
{
	const char *text = "cd /x; ssh gate /usr/bin/ssh node mpirun ssh";

	CHECK_STR(pxd_template_remote_at(text, 0), " gate /usr/bin/ssh node mpirun ssh");
	CHECK_STR(pxd_template_remote_at(text, 1), " node mpirun ssh");
	CHECK_STR(pxd_template_remote_at(text, 2), "");
	CHECK(!pxd_template_remote_at(text, 3));
	CHECK_STR(pxd_template_remote_at("ssh\tx", 0), "\tx");
	CHECK(!pxd_template_remote_at("", 0));
}

TEST(only_placeholders_are_replaced)
{
	static char *one[] = { "2", NULL };
	const struct pxd_hole holes[] = { { "ranks", one }, { "app", one } };
	char bad[PXD_HOLE_MAX], *out = NULL;
	const char *near = NULL;

	REQUIRE_INT(pxd_template_fill("awk '{print}' ${ranks} {ranks}{ranks} {RANKS} { ranks } {", holes, 2,
			    &out, bad, &near),
		0);
	CHECK_STR(out, "awk '{print}' ${ranks} 22 {RANKS} { ranks } {");
	free(out);
	out = NULL;
	CHECK_INT(pxd_template_fill("mpirun {rank}", holes, 2, &out, bad, &near), PX_EINVAL);
	CHECK(out == NULL);
	CHECK_STR(bad, "rank");
	CHECK_STR(near, "ranks");
	CHECK(pxd_template_has("x {app}", "app") && !pxd_template_has("x ${app}", "app"));
	out = pxd_text_replace("a{ranks}b{x}c", holes, 2);
	CHECK_STR(out, "a2b{x}c");
	free(out);
}

TEST(way_to_another_machine_is_gone_again)
{
	static const struct {
		const char *start, *way;
	} rows[] = {
		{ "ssh host {guard} mpirun {app}", "ssh host true" },
		{ "cd / && exec ssh -p 22 a ssh b {key} {guard} mpirun {app}; rm x",
			" exec ssh -p 22 a ssh b {key} true" },
		{ "ssh host 'cd /x && {key} {guard} mpirun {app}'", "ssh host 'cd /x && {key} true'" },
		{ "x\nssh host \"{guard} mpirun\"", "ssh host \"true\"" }, { "ssh host mpirun {app}", NULL },
		{ "{guard} mpirun {app}", NULL },           /* signalled like any process here */
		{ "ssh gate; {guard} mpirun {app}", NULL }, /* what runs here, too */
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char *way = pxd_template_way(rows[i].start, "guard", "true");

		CHECK(!way == !rows[i].way);
		if (way)
			CHECK_STR(way, rows[i].way);
		free(way);
	}
}
