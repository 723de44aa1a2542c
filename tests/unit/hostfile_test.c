/* The hostfile: what is accepted and what it means, and the exact words of every error. */
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "base/err.h"
#include "hostfile.h"

/* Texts that must be refused, and the whole error line. */
static const struct {
	const char *text, *error;
} bad[] = {
	{ "", "F:1:1: found an empty hostfile, expected 'sites:' with a list of sites, or lines 'host tcp "
	      "ranks (start command)'" },
	{ "# x\n", "F:1:1: found an empty hostfile, expected 'sites:' with a list of sites, or lines 'host "
		   "tcp ranks (start command)'" },
	{ "job: x\n", "F:1:1: found the hostfile without 'sites', expected the key 'sites'" },
	{ "sits: []\n", "F:1:1: found the unknown key 'sits', expected a key of the hostfile (the nearest is "
			"'sites')" },
	{ "sites:\n  - name: a\n    prot: 1\n    ranks: 1\n",
		"F:3:5: found the unknown key 'prot', expected a key of a site (the nearest is 'port')" },
	{ "sites:\n  - name: a\n    ranks: 1\n    ranks: 2\n",
		"F:4:5: found the key 'ranks' a second time (the first is in line 3), expected every key "
		"once" },
	{ "sites:\n  - {name: a, ranks: 1}\n  - {name: a, ranks: 1}\n",
		"F:3:12: found a second site 'a' (the first is in line 2), expected a name of its own for "
		"every site" },
	{ "sites:\n  - {name: a, ranks: 1, port: 70000}\n",
		"F:2:31: found '70000', expected a port number from 1 to 65535, or 0 for any free one" },
	{ "sites:\n  - {name: a, ranks: 1, port: http}\n",
		"F:2:31: found 'http', expected a port number from 1 to 65535, or 0 for any free one" },
	{ "sites:\n  - {name: a, ranks: 0}\n",
		"F:2:22: found '0', expected a number of ranks from 1 to 16777216" },
	{ "sites:\n  - {name: a, ranks: -4}\n",
		"F:2:22: found '-4', expected a number of ranks from 1 to 16777216" },
	{ "sites:\n  - {name: a, ranks: 99999999999999999999999}\n",
		"F:2:22: found '99999999999999999999999', expected a number of ranks from 1 to 16777216" },
	{ "sites:\n  - {name: a, ranks: [1]}\n",
		"F:2:22: found a list, expected a number of ranks from 1 to 16777216" },
	{ "sites:\n  - {name: a, ranks: }\n",
		"F:2:22: found nothing, expected a number of ranks from 1 to 16777216" },
	{ "sites: [{name: a, ranks: 1}]\ndeadlines: {start: 120}\n",
		"F:2:20: found '120', expected a duration from 1ms to 168h such as 500ms, 120s, 2m or 1h" },
	{ "sites: [{name: a, ranks: 1}]\ndeadlines: {start: 12 parsecs}\n",
		"F:2:20: found '12 parsecs', expected a duration from 1ms to 168h such as 500ms, 120s, 2m or "
		"1h" },
	{ "sites: [{name: a, ranks: 1}]\ndeadlines: {strat: 12s}\n",
		"F:2:13: found the unknown key 'strat', expected a key of deadlines (the nearest is "
		"'start')" },
	{ "sites:\n\t- name: a\n", "F:2:1: found a tab in the indentation, expected spaces" },
	{ "sites:\n  - name: a\n\tranks: 1\n", "F:3:1: found a tab in the indentation, expected spaces" },
	{ "a: &x [1]\nb: *x\n", "F:1:4: found the anchor '&x', expected plain values (anchors and aliases "
				"are not supported)" },
	{ "sites: *x\n", "F:1:8: found the alias '*x', expected plain values (anchors and aliases are not "
			 "supported)" },
	{ "sites: &x []\n", "F:1:8: found the anchor '&x', expected plain values (anchors and aliases are "
			    "not supported)" },
	{ "[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]",
		"F:1:13: found deeper nesting, expected at most 12 levels" },
	{ "job: caf\351\n", "F:1:9: found the byte 0xe9, expected UTF-8 text" },
	{ "sites:\n  - {name: a, ranks: 1, bind: \"[::1\"}\n",
		"F:2:31: found '[::1', expected host:port, [IPv6 address]:port, or a host alone" },
	{ "sites:\n  - {name: a, ranks: 1, bind: \"h:x\"}\n",
		"F:2:31: found 'x', expected a port number from 1 to 65535, or 0 for any free one" },
	{ "sites:\n  - {name: a, ranks: 1, mpi: lam}\n",
		"F:2:30: found 'lam', expected openmpi, mpich or auto" },
	{ "sites:\n  - {name: a, ranks: 1, daemons: middle}\n",
		"F:2:34: found 'middle', expected last or first" },
	{ "sites:\n  - {name: a, ranks: 1, env: {PACX_SITE: x}}\n",
		"F:2:31: found 'PACX_SITE', expected a variable that pacxrun does not set itself" },
	{ "sites:\n  - {name: a, ranks: 1, env: {1A: x}}\n",
		"F:2:31: found '1A', expected the name of an environment variable" },
	{ "sites:\n  - {name: a, ranks: 1, env: [A]}\n",
		"F:2:30: found a list, expected a mapping such as {OMP_NUM_THREADS: 1}" },
	{ "sites:\n  - {name: a, ranks: 1, args: -n 3}\n",
		"F:2:31: found '-n 3', expected a list of arguments such as [-n, 10]" },
	{ "sites: [{name: a, ranks: 1}, {name: b, ranks: 1}]\nlinks:\n  - between: [a, c]\n",
		"F:3:18: found 'c', expected the name of a site" },
	{ "sites: [{name: a, ranks: 1}, {name: b, ranks: 1}]\nlinks:\n  - between: [a, a]\n",
		"F:3:18: found 'a' twice, expected two different sites" },
	{ "sites: [{name: a, ranks: 1}, {name: b, ranks: 1}]\nlinks:\n  - {between: [a, b], streams: 4}\n",
		"F:3:23: found the unknown key 'streams', expected a key of a link (the nearest is "
		"'between')" },
	{ "sites: [{name: a, ranks: 1}, {name: b, ranks: 1}]\nlinks:\n  - {}\n",
		"F:3:5: found a link with neither, expected either 'between' or 'default'" },
	{ "sites: [{name: a, ranks: 1}, {name: b, ranks: 1}]\nlinks:\n  - between: [a, b]\n  - between: [b, "
	  "a]\n",
		"F:4:5: found the same link a second time (the first is in line 3), expected every link "
		"once" },
	{ "sites: [{name: a, ranks: 1}\njob: x\n", "F:2:1: found something else, expected ',' or ']'" },
	{ "sites:\n  - name: a: b\n",
		"F:2:12: found mapping values are not allowed in this context, expected YAML text" },
	{ "sites: [{name: a, ranks: 1}]\n---\nsites: []\n",
		"F:2:1: found a second document, expected one document" },
	{ "sites:\n  - {name: a, ranks: 1, host: h1, port: 1}\n  - {name: b, ranks: 1}\n",
		"F:3:12: found no host in site 'b', expected host: (name or address which the other sites "
		"dial)" },
	{ "sites:\n  - {name: a, ranks: 1, host: h1, port: 5}\n  - {name: b, ranks: 1, host: h1, port: 5}\n",
		"F:3:41: found port 5 of h1 a second time (site 'a' has it), expected a port of its own for "
		"every site of a host" },
	{ "sites:\n  - {name: a, ranks: 1, port: 0}\n  - {name: b, ranks: 1, start: manual}\n",
		"F:2:31: found port 0, expected a fixed port, because a site of this job is started by "
		"hand" },
	{ "sites:\n  - {name: a b, ranks: 1}\n",
		"F:2:12: found 'a b', expected a name of 1 to 64 letters, digits, '.', '_' and '-'" },
	{ "- a\n- b\n", "F:1:1: found a list, expected a mapping (key: value) for the hostfile" },
	{ "hello\n", "F:1:1: found 'hello', expected a mapping (key: value) for the hostfile" },
	{ "job:melt\n", "F:1:1: found 'job:melt', expected a mapping (key: value) for the hostfile" },
	{ "sites: left\n", "F:1:8: found 'left', expected a list of sites" },
	{ "sites:\n  - name: a\n", "F:2:5: found a site without 'ranks', expected the key 'ranks'" },
	{ "sites: []\n", "F:1:8: found an empty list, expected at least one site" },
	{ "host1 udp 4\n", "F:1:7: found 'udp', expected the protocol tcp" },
	{ "host1 tcp\n", "F:1:10: found the end of the line, expected a number of ranks from 1 to 16777216" },
	{ "host1 tcp many\n", "F:1:11: found 'many', expected a number of ranks from 1 to 16777216" },
	{ "host1 tcp 4 (ssh x\n", "F:1:19: found the end of the line, expected ')' after the start command" },
	{ "host1 tcp 4 ssh x\n",
		"F:1:13: found 'ssh x', expected (start command), # for a start by hand, or nothing" },
	{ "host1 tcp 4 ()\n", "F:1:13: found '()', expected a start command" },
	{ "host1:99999 tcp 4\n",
		"F:1:1: found '99999', expected a port number from 1 to 65535, or 0 for any free one" },
	{ "# c\nhost1 tcp 4\n  host2 tcp 0\n",
		"F:3:13: found '0', expected a number of ranks from 1 to 16777216" },
	{ "job: \"a\\qb\"\nsites: []\n",
		"F:1:8: found unknown escape character while parsing a quoted scalar, expected YAML text" },
	{ "? [a]\n: b\n", "F:1:3: found a list, expected a key of the hostfile" },
	{ "sites:\n  - {name: a, ranks: 1, start: }\n",
		"F:2:32: found nothing, expected a start command, or manual" },
	{ "sites:\n  - {name: a, ranks: 1, start: \"\"}\n",
		"F:2:32: found an empty text, expected a start command, or manual" },
};

static char why[PXD_WHY];

static struct pxd_hosts *parse_n(const char *text, size_t len)
{
	struct pxd_hosts *h = NULL;
	int rc;

	why[0] = '\0';
	rc = pxd_hosts_parse(text, len, "F", &h, why, sizeof why);
	CHECK((rc == 0) == (h != NULL));
	CHECK(rc == 0 || rc == PX_ECONF);
	return h;
}

static struct pxd_hosts *parse(const char *text)
{
	return parse_n(text, strlen(text));
}

TEST(bad_texts_are_refused_with_exact_words)
{
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct pxd_hosts *h = parse(bad[i].text);

		CHECK(h == NULL);
		CHECK_STR(why, bad[i].error);
		pxd_hosts_free(h);
	}
}

TEST(nul_bytes_and_utf16_are_refused)
{
	static const char nul[] = "job: a\0b\n", utf16[] = "\xFF\xFEj\0o\0b\0";

	CHECK(parse_n(nul, sizeof nul - 1) == NULL);
	CHECK_STR(why, "F:1:7: found the control character 0x00, expected text");
	CHECK(parse_n(utf16, sizeof utf16 - 1) == NULL);
	CHECK_STR(why, "F:1:1: found the byte 0xff, expected UTF-8 text");
	CHECK(parse_n(NULL, 0) == NULL);
}

TEST(huge_and_deep_texts_are_refused_quickly)
{
	size_t n = PXD_HOSTFILE_MAX + 1;
	char *text = malloc(n);
	struct pxd_hosts *h;

	REQUIRE(text != NULL);
	memset(text, '[', n);
	CHECK(parse_n(text, n) == NULL);
	CHECK_STR(why, "F: found 1048577 bytes, expected at most 1048576 bytes (is this a hostfile?)");
	CHECK(parse_n(text, n - 1) == NULL);
	CHECK_STR(why, "F:1:13: found deeper nesting, expected at most 12 levels");
	/* As many classic sites as fit, all on one host. */
	for (size_t i = 0; i + 8 <= n - 1; i += 8)
		memcpy(text + i, "h tcp 1\n", 8);
	h = parse_n(text, 8 * PXD_SITES_MAX);
	CHECK(h != NULL && h->nsites == PXD_SITES_MAX);
	pxd_hosts_free(h);
	CHECK(parse_n(text, 8 * (PXD_SITES_MAX + 1)) == NULL);
	CHECK_STR(why, "F:4097:1: found more sites, expected at most 4096");
	free(text);
}

TEST(every_key_arrives)
{
	struct pxd_hosts *h =
		parse("job: melt\n"
		      "sites:\n"
		      "  - name: left\n"
		      "    host: left.example.org\n"
		      "    port: 31000\n"
		      "    bind: 127.0.0.1:31001\n"
		      "    ranks: 4\n"
		      "    mpi: openmpi\n"
		      "    exe: ./app.{mpi}\n"
		      "    args: [-n, '10 ', \"\"]\n"
		      "    env: {OMP_NUM_THREADS: 1, EMPTY: }\n"
		      "    daemons: first\n"
		      "    prefix: /opt/pacx\n"
		      "    start: \"ssh left.example.org mpirun -np {ranks} {app} : -np {daemons} {pacxd}\"\n"
		      "  - {name: right, host: \"::1\", bind: \"[::]\", ranks: 2, start: manual}\n"
		      "links:\n"
		      "  - between: [right, left]\n"
		      "  - default:\n"
		      "deadlines: {start: 1.5m}\n");
	const struct pxd_site *s;

	CHECK_STR(why, "");
	REQUIRE(h != NULL);
	CHECK_STR(h->job, "melt");
	REQUIRE_INT(h->nsites, 2);
	CHECK_INT(h->nranks, 6);
	CHECK_INT(h->deadline_start_ms, 90000);
	s = &h->sites[0];
	CHECK_STR(s->name, "left");
	CHECK_STR(s->host, "left.example.org");
	CHECK_INT(s->port, 31000);
	CHECK_STR(s->bind_host, "127.0.0.1");
	CHECK_INT(s->bind_port, 31001);
	CHECK_INT(s->ranks, 4);
	CHECK_INT(s->mpi, PX_MPI_OPENMPI);
	CHECK_STR(s->exe, "./app.{mpi}");
	REQUIRE_INT(s->nargs, 3);
	CHECK_STR(s->args[1], "10 ");
	CHECK_STR(s->args[2], "");
	REQUIRE_INT(s->nenv, 2);
	CHECK_STR(s->env[0].name, "OMP_NUM_THREADS");
	CHECK_STR(s->env[0].value, "1");
	CHECK_STR(s->env[1].value, "");
	CHECK(s->daemons_first && !s->manual);
	CHECK_STR(s->prefix, "/opt/pacx");
	CHECK(s->start != NULL);
	s = &h->sites[1];
	CHECK(s->manual && !s->start && !s->daemons_first);
	CHECK_INT(s->port, PXD_PORT_DEFAULT);
	CHECK_STR(s->bind_host, "::");
	CHECK_INT(s->bind_port, PXD_PORT_DEFAULT);
	CHECK_INT(s->base, 4);
	CHECK_INT(s->mpi, PX_MPI_OTHER);
	REQUIRE_INT(h->nlinks, 2);
	CHECK_INT(h->links[0].a, 1);
	CHECK_INT(h->links[0].b, 0);
	CHECK_INT(h->links[1].a, -1);
	CHECK_INT(pxd_hosts_find(h, "right"), 1);
	CHECK_INT(pxd_hosts_find(h, "up"), -1);
	pxd_hosts_free(h);
}

TEST(local_sites_get_any_port_and_jobs_with_a_manual_one_fixed_ports)
{
	struct pxd_hosts *h = parse("sites: [{name: a, ranks: 1}, {name: b, ranks: 2}]");

	REQUIRE(h != NULL);
	CHECK_STR(h->sites[0].host, "127.0.0.1");
	CHECK_STR(h->sites[0].bind_host, "127.0.0.1");
	CHECK_INT(h->sites[1].port, 0);
	CHECK_INT(h->deadline_start_ms, PXD_START_DEADLINE_MS);
	pxd_hosts_free(h);
	h = parse("sites: [{name: a, ranks: 1}, {name: b, ranks: 2, start: manual}]");
	REQUIRE(h != NULL);
	CHECK_INT(h->sites[0].port, PXD_PORT_DEFAULT);
	CHECK_INT(h->sites[1].port, PXD_PORT_DEFAULT + 1);
	pxd_hosts_free(h);
}

TEST(classic_form_is_recognised)
{
	struct pxd_hosts *h = parse("# PACX-MPI\n"
				    "\n"
				    "host1 tcp 100 (rsh host2 mpirun -np 102 {exe})\r\n"
				    "  host2:4000\ttcp\t8 #\n"
				    "host2:4001 tcp 8 (#)\n"
				    "[::1]:99 tcp 1");

	CHECK_STR(why, "");
	REQUIRE(h != NULL);
	REQUIRE_INT(h->nsites, 4);
	CHECK_STR(h->sites[0].name, "host1");
	CHECK_STR(h->sites[0].start, "rsh host2 mpirun -np 102 {exe}");
	CHECK_INT(h->sites[0].port, PXD_PORT_DEFAULT);
	CHECK_INT(h->sites[0].ranks, 100);
	CHECK(h->sites[0].classic && !h->sites[0].manual);
	CHECK(h->sites[1].manual && h->sites[2].manual && !h->sites[3].manual);
	CHECK_INT(h->sites[1].port, 4000);
	CHECK_STR(h->sites[2].name, "host2.2");
	CHECK_STR(h->sites[3].host, "::1");
	CHECK_STR(h->sites[3].name, "0-1");
	CHECK_INT(h->sites[3].base, 116);
	pxd_hosts_free(h);
}

TEST(plan_reads_back_as_the_same_job)
{
	struct pxd_hosts *h = parse(
		"job: 'a \"b\" \\ {c}: #'\n"
		"sites:\n"
		"  - {name: \"null\", ranks: 1, host: h1, port: 7, bind: 0.0.0.0:8, daemons: first, mpi: "
		"mpich}\n"
		"  - {name: \"10\", ranks: 2, host: \"fe80::1%eth0\", port: 7, start: \"ssh x {app}\"}\n"
		"deadlines: {start: 1500ms}\n");
	struct pxd_hosts *again;
	char *plan, *plan2;

	REQUIRE(h != NULL);
	plan = pxd_hosts_plan(h);
	REQUIRE(plan != NULL);
	CHECK(strchr(plan, '\n') == NULL);
	again = parse(plan);
	CHECK_STR(why, "");
	REQUIRE(again != NULL);
	CHECK_STR(again->job, h->job);
	CHECK_STR(again->job_id, h->job_id);
	CHECK_STR(again->sites[0].bind_host, "0.0.0.0");
	CHECK_INT(again->sites[0].bind_port, 8);
	CHECK_STR(again->sites[1].host, "fe80::1%eth0");
	CHECK_INT(again->deadline_start_ms, 1500);
	CHECK(again->sites[0].daemons_first);
	plan2 = pxd_hosts_plan(again);
	CHECK_STR(plan2, plan);
	free(plan);
	free(plan2);
	pxd_hosts_free(h);
	pxd_hosts_free(again);
}

TEST(job_id_depends_on_what_makes_the_job)
{
	static const char *const texts[] = {
		"sites: [{name: a, ranks: 1, host: h, port: 1}, {name: b, ranks: 2, host: i, port: 2}]",
		"sites: [{name: a, ranks: 1, host: h, port: 1, mpi: mpich}, {name: b, ranks: 2, host: i, "
		"port: 2}]",
		"sites: [{name: a, ranks: 2, host: h, port: 1}, {name: b, ranks: 2, host: i, port: 2}]",
		"sites: [{name: a, ranks: 1, host: h, port: 3}, {name: b, ranks: 2, host: i, port: 2}]",
		"sites: [{name: b, ranks: 1, host: h, port: 1}, {name: a, ranks: 2, host: i, port: 2}]",
		"{job: x, sites: [{name: a, ranks: 1, host: h, port: 1}, {name: b, ranks: 2, host: i, port: "
		"2}]}",
	};
	char first[PX_JOB_MAX + 1] = "";

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct pxd_hosts *h = parse(texts[i]);

		REQUIRE(h != NULL);
		if (i == 0)
			strcpy(first, h->job_id);
		else
			CHECK_INT(strcmp(first, h->job_id) == 0, i == 1);
		pxd_hosts_free(h);
	}
}

TEST(environment_gives_plan_site_and_job)
{
	struct pxd_hosts *h = NULL;
	int self = -1;

	unsetenv("PACX_PLAN");
	unsetenv("PACX_HOSTFILE");
	unsetenv("PACX_SITE");
	unsetenv("PACX_JOB");
	CHECK_INT(pxd_hosts_from_env(&h, &self, why, sizeof why), PX_ECONF);
	setenv("PACX_HOSTFILE", "/nonexistent/hosts.yml", 1);
	CHECK_INT(pxd_hosts_from_env(&h, &self, why, sizeof why), PX_EIO);
	CHECK_STR(why, "/nonexistent/hosts.yml: cannot open the hostfile: No such file or directory");
	setenv("PACX_PLAN", "sites: [{name: a, ranks: 1, port: 5}, {name: b, ranks: 1, port: 6}]", 1);
	CHECK_INT(pxd_hosts_from_env(&h, &self, why, sizeof why), PX_ESITE);
	CHECK_STR(why, "PACX_SITE is not set; set it to the name of this site in PACX_PLAN");
	setenv("PACX_SITE", "c", 1);
	CHECK_INT(pxd_hosts_from_env(&h, &self, why, sizeof why), PX_ESITE);
	CHECK_STR(why, "PACX_SITE: found 'c', expected the name of a site in PACX_PLAN");
	setenv("PACX_SITE", "b", 1);
	setenv("PACX_JOB", "j17", 1);
	REQUIRE_INT(pxd_hosts_from_env(&h, &self, why, sizeof why), 0);
	CHECK_INT(self, 1);
	CHECK_STR(h->job_id, "j17");
	pxd_hosts_free(h);
	h = NULL;
	setenv("PACX_PLAN", "sites: [{name: a, ranks: 1}, {name: b, ranks: 1}]", 1);
	CHECK_INT(pxd_hosts_from_env(&h, NULL, why, sizeof why), PX_ECONF);
	CHECK(h == NULL);
}
