/* The hostfile: what is accepted, and what it means. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostfile_parse.h"
#include "wire/world.h"

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

TEST(link_keys_arrive_and_are_inherited_whatever_their_order)
{
	struct pxd_hosts *h = parse(
		"sites: [{name: a, ranks: 1}, {name: b, ranks: 1}, {name: c, ranks: 1}]\n"
		"links:\n"
		"  - {between: [c, a], streams: auto, compress: zlib, tcp: {source_port: 40000}, proxy: "
		"none,\n"
		"     reconnect: 5m, emulate: {rate: 12Mbit/s}, security: tls, relay: none, predict: auto}\n"
		"  - {default: , streams: 4, compress: zstd:19, predict: always, security: none, dial: \"ssh "
		"-W %h:%p j\",\n"
		"     tcp: {congestion: bbr}, relay: \"[::1]:7\", reconnect: 90s,\n"
		"     emulate: {latency: 0.5ms, rate: 1.5MiB/s}}\n"
		"  - {between: [b, a], dial: b, compress: lz4, proxy: \"socks5://u:p@[::1]:1080\"}\n");
	const struct pxd_link_opts *o;

	CHECK_STR(why, "");
	REQUIRE(h != NULL);
	o = pxd_hosts_link(h, 1, 2);
	CHECK(o == &h->link_default);
	CHECK_INT(o->streams, 4);
	CHECK_INT(o->compress, PXD_COMPRESS_ZSTD);
	CHECK_INT(o->compress_level, 19);
	CHECK_INT(o->predict, PXD_PREDICTION_ALWAYS);
	CHECK(o->plain);
	CHECK_STR(o->dial, "ssh -W %h:%p j");
	CHECK_INT(o->dialer, -1);
	CHECK_STR(o->congestion, "bbr");
	CHECK_STR(o->relay, "[::1]:7");
	CHECK_INT(o->reconnect_ms, 90000);
	CHECK_INT(o->emulate_latency_us, 500);
	CHECK_INT((long)o->emulate_rate, 1572864);
	o = pxd_hosts_link(h, 0, 2);
	CHECK(o == pxd_hosts_link(h, 2, 0));
	CHECK_INT(o->streams, 0);
	CHECK_INT(o->compress, PXD_COMPRESS_ZLIB);
	CHECK_INT(o->predict, PXD_PREDICTION_AUTO);
	CHECK_INT(o->compress_level, 0);
	CHECK(!o->plain && !o->proxy && !o->relay);
	CHECK_STR(o->congestion, "bbr");
	CHECK_INT(o->source_port, 40000);
	CHECK_STR(o->dial, "ssh -W %h:%p j");
	CHECK_INT(o->reconnect_ms, 300000);
	CHECK_INT(o->emulate_latency_us, 500);
	CHECK_INT((long)o->emulate_rate, 1500000);
	o = pxd_hosts_link(h, 0, 1);
	CHECK_INT(o->streams, 4);
	CHECK_INT(o->compress, PXD_COMPRESS_LZ4);
	CHECK_INT(o->compress_level, 0);
	CHECK_INT(o->dialer, 1);
	CHECK(!o->dial && o->plain);
	CHECK_STR(o->proxy, "socks5://u:p@[::1]:1080");
	pxd_hosts_free(h);
	h = parse("sites: [{name: a, ranks: 1}, {name: b, ranks: 1}]\n");
	REQUIRE(h != NULL);
	o = pxd_hosts_link(h, 0, 1);
	CHECK(o->streams == 0 && o->compress == PXD_COMPRESS_AUTO && !o->plain && o->dialer == -1);
	CHECK(!o->dial && !o->proxy && !o->relay && !o->congestion && o->reconnect_ms == PXD_RECONNECT_MS);
	CHECK(o->emulate_latency_us == 0 && o->emulate_rate == 0 && h->sites[0].listen && !h->sites[0].key);
	CHECK_UINT(h->sites[1].buffer, 256u << 20);
	pxd_hosts_free(h);
}

TEST(who_dials_follows_dial_listen_and_relay)
{
	struct pxd_hosts *h =
		parse("sites: [{name: a, ranks: 1, host: h1}, {name: b, ranks: 1, listen: no},\n"
		      "        {name: c, ranks: 1, host: h2}, {name: d, ranks: 1, listen: no}]\n"
		      "links:\n"
		      "  - {between: [a, c], dial: c}\n"
		      "  - {between: [b, d], relay: login:31001}\n"
		      "  - {default: , dial: d}\n");

	CHECK_STR(why, "");
	REQUIRE(h != NULL);
	CHECK(!pxd_hosts_dials(h, 0, 0, 1) && !pxd_hosts_dials(h, 0, 1, 0)); /* nobody can reach b */
	CHECK(pxd_hosts_dials(h, 1, 0, 1) && pxd_hosts_dials(h, 1, 1, 0));
	CHECK(!pxd_hosts_dials(h, 0, 0, 2) && !pxd_hosts_dials(h, 0, 2, 0)); /* dial: c */
	CHECK(pxd_hosts_dials(h, 2, 0, 2) && pxd_hosts_dials(h, 2, 2, 0));
	CHECK(pxd_hosts_dials(h, 1, 1, 3) && pxd_hosts_dials(h, 3, 1, 3)); /* both dial the relay */
	CHECK(pxd_hosts_dials(h, 3, 0, 3) && pxd_hosts_dials(h, 3, 3, 0)); /* dial: d of the default */
	CHECK(!pxd_hosts_dials(h, 0, 2, 3));                               /* another one's link */
	CHECK_STR(h->sites[1].host, "127.0.0.1");
	CHECK_INT(h->sites[1].port, 0);
	pxd_hosts_free(h);
	h = parse("sites: [{name: a, ranks: 1}, {name: b, ranks: 1}, {name: c, ranks: 1}]\n"
		  "links: [{default: , dial: c}]");
	REQUIRE(h != NULL);
	CHECK(pxd_hosts_dials(h, 0, 0, 1) &&
		!pxd_hosts_dials(h, 0, 1, 0)); /* c is not of this pair: who sends */
	CHECK(!pxd_hosts_dials(h, 0, 0, 2) && pxd_hosts_dials(h, 2, 0, 2));
	pxd_hosts_free(h);
}

TEST(gateways_take_what_they_lack_from_the_site)
{
	struct pxd_hosts *h =
		parse("sites:\n"
		      "  - {name: a, ranks: 1, gateways: [{host: n1, port: 7}, {host: n2, port: 7, bind: "
		      "'0.0.0.0'},\n"
		      "     {host: n2, port: 8, bind: '[::]:9'}], buffer: 1.5GiB, key: /home/me/key}\n"
		      "  - {name: b, ranks: 1, host: m, port: 40, bind: '0.0.0.0:50', gateways: [{}, {}, "
		      "{host: o}]}\n"
		      "  - {name: c, ranks: 1, host: m, gateways: [{}, {}]}\n"
		      "  - {name: d, ranks: 1, host: p, bind: 10.0.0.1}\n");
	const struct pxd_gateway *g;

	CHECK_STR(why, "");
	REQUIRE(h != NULL);
	REQUIRE_INT(h->sites[0].ngateways, 3);
	CHECK_STR(h->sites[0].host, "n1");
	CHECK_INT(h->sites[0].port, 7);
	CHECK_STR(h->sites[0].bind_host, "n1");
	CHECK_UINT(h->sites[0].buffer, 3u << 29);
	CHECK_STR(h->sites[0].key, "/home/me/key");
	g = h->sites[0].gateways;
	CHECK_STR(g[1].bind_host, "0.0.0.0");
	CHECK_INT(g[1].bind_port, 7);
	CHECK_STR(g[2].bind_host, "::");
	CHECK_INT(g[2].bind_port, 9);
	REQUIRE_INT(h->sites[1].ngateways, 3);
	g = h->sites[1].gateways;
	CHECK(g[0].port == 40 && g[1].port == 41 && g[2].port == 40);
	CHECK(g[0].bind_port == 50 && g[1].bind_port == 51 && g[2].bind_port == 50);
	CHECK_STR(g[1].host, "m");
	CHECK_STR(g[2].host, "o");
	CHECK_STR(g[2].bind_host, "0.0.0.0");
	g = h->sites[2].gateways;
	CHECK(g[0].port == PXD_PORT_DEFAULT + 2 && g[1].port == PXD_PORT_DEFAULT + 3);
	REQUIRE_INT(h->sites[3].ngateways, 1);
	g = h->sites[3].gateways;
	CHECK_STR(g[0].host, "p");
	CHECK_STR(g[0].bind_host, "10.0.0.1");
	CHECK(g[0].port == PXD_PORT_DEFAULT && g[0].bind_port == PXD_PORT_DEFAULT);
	pxd_hosts_port_set(&h->sites[2], 0, 1, 2);
	pxd_hosts_port_set(&h->sites[2], 1, 3, 4);
	CHECK(h->sites[2].port == 1 && h->sites[2].bind_port == 2 && h->sites[2].gateways[1].bind_port == 4);
	pxd_hosts_free(h);
	h = parse("sites: [{name: a, ranks: 1, gateways: [{}, {}]}, {name: b, ranks: 1, port: 0, gateways: "
		  "[{}, "
		  "{}]}]");
	REQUIRE(h != NULL);
	CHECK_STR(h->sites[0].gateways[1].host, "127.0.0.1");
	CHECK(h->sites[0].gateways[1].port == 0 && h->sites[1].gateways[1].port == 0);
	pxd_hosts_free(h);
}

static int files_of(const char *text)
{
	struct pxd_hosts *h = parse(text);
	int files = h ? h->files : -1;

	pxd_hosts_free(h);
	return files;
}

TEST(files_are_shared_on_one_machine_and_at_the_first_site_of_several)
{
	CHECK_INT(files_of("sites: [{name: a, ranks: 1}, {name: b, ranks: 2}]"), PX_WORLD_FILES_SHARED);
	CHECK_INT(files_of("sites: [{name: a, ranks: 1, host: h, port: 1}, {name: b, ranks: 2, host: i, "
			   "port: 2}]"),
		PX_WORLD_FILES_SITE);
	CHECK_INT(files_of("sites: [{name: a, ranks: 1}, {name: b, ranks: 2}]\nfiles: local"),
		PX_WORLD_FILES_LOCAL);
	CHECK_INT(files_of("sites: [{name: a, ranks: 1}, {name: local, ranks: 2}]\nfiles: local"),
		PX_WORLD_FILES_LOCAL);
	CHECK_INT(files_of("sites: [{name: a, ranks: 1}, {name: local, ranks: 2}]\nfiles: \"local\""),
		PX_WORLD_FILES_SITE + 1);
	CHECK_INT(files_of("files: b\nsites: [{name: a, ranks: 1}, {name: b, ranks: 2}]"),
		PX_WORLD_FILES_SITE + 1);
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
		"  - {name: c, ranks: 2, gateways: [{host: n1, port: 7}, {host: n2, port: 8, bind: "
		"'[::1]:9'}],\n"
		"     group: x, uplink: 100Mbit/s, buffer: 1234567.5kB, key: "
		"\"/tmp/\\u2028k\\U0001F600\u00e9y '\\\"\"}\n"
		"  - {name: d, ranks: 1, listen: no, group: x}\n"
		"links:\n"
		"  - {between: [c, d], relay: none, proxy: none, predict: auto, streams: auto, dial: d, "
		"emulate: {rate: "
		"unlimited}}\n"
		"  - {between: [\"10\", c], tcp: {source_port: 0}, compress: none, predict: none, dial: 'x "
		"\"%h\" \\ %p', "
		"proxy: none}\n"
		"  - {default: , streams: 3, compress: zlib:7, predict: always, security: none, tcp: "
		"{congestion: cubic, "
		"source_port: 5},\n"
		"     dial: c, proxy: \"http://a:b:c@h:3\", relay: r:1, reconnect: 1.5s,\n"
		"     emulate: {latency: 1.5ms, rate: 3kbit/s}}\n"
		"  - {between: [\"10\", d]}\n"
		"deadlines: {start: 1500ms}\n"
		"files: \"10\"\n");
	struct pxd_hosts *again;
	const struct pxd_link_opts *o;
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
	CHECK_INT(again->files, h->files);
	CHECK(again->sites[0].daemons_first);
	REQUIRE_INT(again->sites[2].ngateways, 2);
	CHECK_STR(again->sites[2].gateways[1].bind_host, "::1");
	CHECK_INT(again->sites[2].gateways[1].bind_port, 9);
	CHECK_UINT(again->sites[2].buffer, 1234567500);
	CHECK_INT((long)again->sites[2].uplink, 12500000);
	CHECK(!again->sites[0].group && again->sites[3].uplink == 0);
	for (int i = 0; i < 4; i++)
		CHECK_INT(pxd_hosts_group(again, i), i == 3 ? 2 : i);
	CHECK_STR(again->sites[2].key, "/tmp/\u2028k\U0001F600\u00e9y '\"");
	CHECK_STR(again->sites[2].key, h->sites[2].key);
	CHECK(!again->sites[3].listen && again->sites[3].port == 0 && again->sites[0].listen);
	for (int a = 0; a < 4; a++) {
		for (int b = 0; b < 4; b++) {
			const struct pxd_link_opts *x = pxd_hosts_link(h, a, b);

			o = pxd_hosts_link(again, a, b);
			CHECK(x->streams == o->streams && x->compress == o->compress &&
				x->compress_level == o->compress_level && x->plain == o->plain &&
				x->predict == o->predict);
			CHECK(x->source_port == o->source_port && x->dialer == o->dialer &&
				x->reconnect_ms == o->reconnect_ms);
			CHECK(x->emulate_latency_us == o->emulate_latency_us &&
				!(x->emulate_rate < o->emulate_rate) && !(x->emulate_rate > o->emulate_rate));
			CHECK_STR(o->congestion ? o->congestion : "-", x->congestion ? x->congestion : "-");
			CHECK_STR(o->dial ? o->dial : "-", x->dial ? x->dial : "-");
			CHECK_STR(o->proxy ? o->proxy : "-", x->proxy ? x->proxy : "-");
			CHECK_STR(o->relay ? o->relay : "-", x->relay ? x->relay : "-");
		}
	}
	o = pxd_hosts_link(again, 3, 2);
	CHECK(o->dialer == 3 && !o->relay && !o->proxy && o->streams == 0);
	CHECK_INT(o->emulate_latency_us, 1500);
	CHECK_STR(pxd_hosts_link(again, 1, 2)->dial, "x \"%h\" \\ %p");
	CHECK_STR(pxd_hosts_link(again, 0, 1)->proxy, "http://a:b:c@h:3");
	CHECK_INT((long)pxd_hosts_link(again, 0, 1)->emulate_rate, 375);
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
		"sites: [{name: a, ranks: 1, host: h, port: 1, gateways: [{}, {}]}, {name: b, ranks: 2, "
		"host: "
		"i, port: 2}]",
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
	char missing[] = "/tmp/pacx-hostfile-XXXXXX", text[160];
	struct pxd_hosts *h = NULL;
	int self = -1;

	unsetenv("PACX_PLAN");
	unsetenv("PACX_HOSTFILE");
	unsetenv("PACX_SITE");
	unsetenv("PACX_JOB");
	CHECK_INT(pxd_hosts_from_env(&h, &self, why, sizeof why), PX_ECONF);
	REQUIRE(mkdtemp(missing) && rmdir(missing) == 0);
	setenv("PACX_HOSTFILE", missing, 1);
	CHECK_INT(pxd_hosts_from_env(&h, &self, why, sizeof why), PX_EIO);
	snprintf(text, sizeof text, "%s: cannot open the hostfile: No such file or directory", missing);
	CHECK_STR(why, text);
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
