/* The exact words in which hostfiles are refused. */
#include <stdlib.h>
#include <string.h>

#include "hostfile_parse.h"

#define AB    "sites: [{name: a, ranks: 1}, {name: b, ranks: 1}]\nlinks:\n"
#define PROXY "socks5://host:port or http://host:port, with user:password@ before the host if need be"

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
	{ "sites: [{name: a, ranks: 1}]\nfiles: b\n",
		"F:2:8: found 'b', expected shared, local or the name of a site" },
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
	{ "sites:\n  - {name: a, ranks: 1, mpi: lam}\n", "F:2:30: found 'lam', expected " PXD_MPI_EXPECTED },
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
	{ AB "  - {between: [a, b], steams: 4}\n",
		"F:3:23: found the unknown key 'steams', expected a key of a link (the nearest is "
		"'streams')" },
	{ AB "  - {between: [a, b], streams: 65}\n",
		"F:3:32: found '65', expected auto, or a number of streams from 1 to 64" },
	{ AB "  - {default: , streams: 0}\n",
		"F:3:26: found '0', expected auto, or a number of streams from 1 to 64" },
	{ AB "  - {default: 3, streams: 1}\n",
		"F:3:15: found '3', expected nothing after 'default:' (options are keys beside it)" },
	{ AB "  - {default: , between: [a, b]}\n",
		"F:3:5: found a link with both, expected either 'between' or 'default'" },
	{ AB "  - {default: , compress: gzip}\n",
		"F:3:27: found 'gzip', expected none, auto, zlib, zlib:1 to zlib:9, lz4, zstd, or zstd:1 to "
		"zstd:19" },
	{ AB "  - {default: , compress: zlib:10}\n",
		"F:3:27: found 'zlib:10', expected none, auto, zlib, zlib:1 to zlib:9, lz4, zstd, or zstd:1 "
		"to zstd:19" },
	{ AB "  - {default: , compress: lz4:1}\n",
		"F:3:27: found 'lz4:1', expected none, auto, zlib, zlib:1 to zlib:9, lz4, zstd, or zstd:1 to "
		"zstd:19" },
	{ AB "  - {default: , predict: maybe}\n", "F:3:26: found 'maybe', expected auto, none or always" },
	{ AB "  - {default: , security: ssl}\n", "F:3:27: found 'ssl', expected tls or none" },
	{ AB "  - {default: , tcp: bbr}\n", "F:3:22: found 'bbr', expected a mapping (key: value) for tcp" },
	{ AB "  - {default: , tcp: {congestion: B/R}}\n",
		"F:3:35: found 'B/R', expected the name of a congestion control such as cubic or bbr" },
	{ AB "  - {default: , tcp: {source_port: 65536}}\n",
		"F:3:36: found '65536', expected a port number from 1 to 65535, or 0 for any" },
	{ AB "  - {between: [a, b], dial: c}\n",
		"F:3:29: found 'c', expected 'a' or 'b', or a command with %h" },
	{ AB "  - {default: , dial: c}\n", "F:3:23: found 'c', expected the name of a site, or a command "
					   "with %h" },
	{ AB "  - {default: , dial: \"ssh %h\\nx\"}\n",
		"F:3:23: found a control character, expected the name of a site, or a command with %h" },
	{ AB "  - {default: , dial: nc %h %p, proxy: http://h:1}\n",
		"F:3:5: found a link with both a command in 'dial' and a 'proxy', expected one of them" },
	{ AB "  - {default: , proxy: ftp://h:1}\n", "F:3:24: found something else, expected " PROXY },
	{ AB "  - {default: , proxy: http://h}\n", "F:3:24: found no host:port in it, expected " PROXY },
	{ AB "  - {default: , proxy: socks5://geheim@h:1}\n",
		"F:3:24: found no user:password of at most 127 characters each, expected " PROXY },
	{ AB "  - {default: , proxy: socks5://u:geheim@h:x}\n",
		"F:3:24: found no host:port in it, expected " PROXY },
	{ AB "  - {default: , proxy: 'http://u:a b@h:1'}\n",
		"F:3:24: found a blank or control character in it, expected " PROXY },
	{ AB "  - {default: , relay: gate}\n",
		"F:3:24: found 'gate', expected host:port of a relay, or none" },
	{ AB "  - {default: , relay: 'a b:1'}\n",
		"F:3:24: found 'a b', expected a host name or an IP address" },
	{ AB "  - {default: , reconnect: 60}\n", "F:3:28: found '60', expected a duration from 1ms to 168h "
						 "such as 500ms, 120s, 2m or 1h" },
	{ AB "  - {default: , emulate: {latency: 10}}\n",
		"F:3:36: found '10', expected a time of at most 60s such as 500us, 10ms or 0.1s" },
	{ AB "  - {default: , emulate: {latency: 61s}}\n",
		"F:3:36: found '61s', expected a time of at most 60s such as 500us, 10ms or 0.1s" },
	{ AB "  - {default: , emulate: {rate: 10MB}}\n",
		"F:3:33: found '10MB', expected a rate from 1B/s such as 1MB/s, 64KiB/s or 10Mbit/s, or "
		"unlimited" },
	{ AB "  - {default: , emulate: {rate: 0MB/s}}\n",
		"F:3:33: found '0MB/s', expected a rate from 1B/s such as 1MB/s, 64KiB/s or 10Mbit/s, or "
		"unlimited" },
	{ AB "  - {default: , emulate: {loss: 1}}\n",
		"F:3:27: found the unknown key 'loss', expected a key of emulate (the nearest is 'rate')" },
	{ "sites:\n  - {name: a, ranks: 1, listen: maybe}\n", "F:2:33: found 'maybe', expected yes or no" },
	{ "sites:\n  - {name: a, ranks: 1, listen: no}\n  - {name: b, ranks: 1}\n"
	  "  - {name: c, ranks: 1, listen: no}\n",
		"F:4:33: found listen: no a second time ('a' has it in line 2), expected relay: host:port in "
		"the link of 'a' and 'c'" },
	{ "sites:\n  - {name: a, ranks: 1, listen: no}\n  - {name: b, ranks: 1, listen: no}\n"
	  "links: [{default: , relay: 'r:1'}, {between: [b, a], relay: none}]\n",
		"F:4:36: found a link without relay of 'b' and 'a', which both have listen: no, expected a "
		"relay:" },
	{ "sites:\n  - {name: a, ranks: 1, listen: no}\n  - {name: b, ranks: 1}\n"
	  "links: [{between: [a, b], dial: b}]\n",
		"F:4:33: found dial: b, but 'a' has listen: no, expected dial: a, or a relay:" },
	{ "sites:\n  - {name: a, ranks: 1, listen: no}\n  - {name: b, ranks: 1}\n"
	  "links: [{default: , dial: b}]\n",
		"F:4:27: found dial: b, but 'a' has listen: no, expected dial: a, or a relay:" },
	{ "sites:\n  - {name: a, ranks: 1, buffer: 1MiB}\n",
		"F:2:33: found '1MiB', expected a size from 16MiB to 1024GiB (kB, MB, GB, KiB, MiB, GiB)" },
	{ "sites:\n  - {name: a, ranks: 1, buffer: 64}\n",
		"F:2:33: found '64', expected a size from 16MiB to 1024GiB (kB, MB, GB, KiB, MiB, GiB)" },
	{ "sites:\n  - {name: a, ranks: 1, group: far away}\n",
		"F:2:32: found 'far away', expected a name of 1 to 64 letters, digits, '.', '_' and '-'" },
	{ "sites:\n  - {name: a, ranks: 1, uplink: 100}\n",
		"F:2:33: found '100', expected a rate from 1B/s such as 1MB/s, 64KiB/s or 10Mbit/s, or "
		"unlimited" },
	{ "sites:\n  - {name: a, ranks: 1, key: }\n", "F:2:30: found nothing, expected the path of a file" },
	{ "sites:\n  - {name: a, ranks: 1, env: {PACX_KEY: x}}\n",
		"F:2:31: found 'PACX_KEY', expected a variable that pacxrun does not set itself" },
	{ "sites:\n  - {name: a, ranks: 1, gateways: []}\n",
		"F:2:35: found an empty list, expected at least one gateway" },
	{ "sites:\n  - {name: a, ranks: 1, gateways: [h1]}\n",
		"F:2:36: found 'h1', expected a mapping (key: value) for a gateway" },
	{ "sites:\n  - {name: a, ranks: 1, gateways: [{hots: h1}]}\n",
		"F:2:37: found the unknown key 'hots', expected a key of a gateway (the nearest is 'host')" },
	{ "sites:\n  - {name: a, ranks: 1, gateways: [{host: h1}, {port: 5}]}\n",
		"F:2:55: found no host in a gateway of site 'a', expected host: (name or address which the "
		"other sites dial)" },
	{ "sites:\n  - {name: a, ranks: 1, host: h1, gateways: [{port: 5}, {port: 5}]}\n",
		"F:2:64: found port 5 of h1 a second time (site 'a' has it), expected a port of its own for "
		"every site of a host" },
	{ "sites:\n  - {name: a, ranks: 1, host: h1, port: 65535, gateways: [{}, {}]}\n",
		"F:2:63: found port 65536 for gateway 1 of site 'a', expected a port up to 65535 for every "
		"gateway" },
	{ "sites:\n  - {name: a, ranks: 1, host: h1, gateways: [{port: 5, bind: '0.0.0.0:0'}]}\n",
		"F:2:62: found port 0, expected a port to listen on" },
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
	{ "sites:\n  - {name: a, ranks: 1, start: \"mpirun -np {ranks} ./hello\"}\n",
		"F:2:32: found a start command that starts nothing of PACX, expected {app} for the program "
		"and {pacxd} for the "
		"daemons, as in: mpirun -np {ranks} {app} : -np {daemons} {pacxd} (a script of yours may "
		"take {env} instead)" },
	{ "host1 tcp 4 (true)\n", "F:1:13: found a start command that starts nothing of PACX, expected {app} "
				  "for the program and {pacxd} for the "
				  "daemons, as in: mpirun -np {ranks} {app} : -np {daemons} {pacxd} (a "
				  "script of yours may take {env} instead)" },
};

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
