#!/usr/bin/env python3
"""resume_test.py: connections of a running job are reset, held up, dropped, cut short, damaged, and refused; what the ranks send to
each other arrives complete, once, and in order, or the job ends everywhere and says why."""
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faulty import Storm  # noqa: E402
from sites import BUILD, flavors, run  # noqa: E402

PAIR = None


def chaos(j, faults, seed, **how):
    for i, p in enumerate(j.proxies):
        p.chaos(seed + i, faults, **how)


def survives(link, faults, what, times, seed=1, dead="30s", most=1 << 20, seconds=1.0, mpi=None, started=False, **job):
    """started: not before all links are up. The job goes on through `times` faults counted as `what`; its statistics know of every lost connection."""
    with Storm(mpi or PAIR, link=f"reconnect: {dead}, {link}", seed=seed, **job) as j:
        if started:
            j.running()
        chaos(j, faults, seed, most=most, seconds=seconds)
        j.until(lambda: j.count(what) >= times, f"{times} times {what}")
        text = j.good()
        reconnects, lost = sum(l["reconnects"] for l in j.links()), j.count("late")
        assert reconnects >= lost, f"{reconnects} reconnects for {lost} cuts; {j.seen()}\n{text}"
        j.gone()


def resets_under_load():
    survives("streams: 1", {"reset": 1}, "cut", 40)


def resets_of_several_streams():
    survives("streams: 3", {"reset": 1}, "cut", 40, seed=2)


def resets_without_tls():
    survives("security: none, compress: none", {"reset": 1}, "cut", 40, seed=3)


def resets_of_what_one_site_dials():
    survives("dial: s0", {"reset": 1, "close": 1}, "cut", 30, seed=4)


def ends_at_any_byte():
    survives("streams: 2", {"close": 1}, "cut", 40, seed=5)


def stalls_are_waited_for():
    survives("streams: 2", {"stall": 1}, "stall", 20, seed=6, seconds=0.2)


def half_open_connections_are_given_up():
    # Heartbeats are 0.2 s apart, so a silent peer is given up after 0.8 s.
    survives("streams: 1", {"drop": 1, "discard": 1}, "drop", 6, seed=7, dead="3s", most=4 << 20, started=True)


def stalls_longer_than_heartbeats_allow():
    survives("security: none, streams: 1", {"stall": 1}, "stall", 3, seed=8, dead="3s", most=4 << 20, seconds=3)


def flipped_bits_under_tls():
    survives("security: tls", {"flip": 1}, "flip", 25, seed=9)


def flipped_bits_under_checksums():
    survives("security: none, compress: lz4", {"flip": 1}, "flip", 25, seed=10, most=4 << 20, started=True)


def everything_at_once():
    survives("streams: 2", {"reset": 4, "close": 2, "stall": 1, "flip": 2, "drop": 0.3, "discard": 0.3}, "connections", 40, seed=11,
             dead="5s", started=True, mpi=[PAIR[0], PAIR[1], PAIR[0]], seconds=0.3)


def predicted(text, links):
    """Segments that referred to earlier ones."""
    n = sum(p["segments"] for l in links for kind, p in l["predicted"].items() if kind != "neighbour")
    assert n > 0, f"nothing was predicted: {links}\n{text}"
    return n


def predictions(link, faults, times, seed, dead="30s", seconds=0.2, mpi=None, largest=300000, **job):
    """The values of an iterative program, predicted from each other, are what they were."""
    with Storm(mpi or PAIR, link=f"reconnect: {dead}, predict: always, {link}", seed=seed, largest=largest, program="steady",
               **job) as j:
        j.running(1 << 17)
        chaos(j, faults, seed, most=200000, seconds=seconds)
        j.until(lambda: j.count("connections") >= times, f"{times} connections")
        text = j.good()
        assert sum(l["reconnects"] for l in j.links()) >= j.count("late"), f"{j.links()}\n{text}"
        links = j.links()
        predicted(text, links)
        j.gone()
        return links


def predictions_survive_cuts():
    predictions("streams: 1", {"reset": 1, "close": 1}, 40, seed=21)


def predictions_survive_cuts_of_several_streams():
    predictions("streams: 3, security: none", {"reset": 2, "close": 2, "flip": 1}, 60, seed=22)


def predictions_survive_cuts_of_two_gateways():
    predictions("streams: 2", {"reset": 2, "close": 1}, 60, seed=24, gateways=2, ranks=2)


def lessons_survive_cuts():
    """A wire so slow that both ends learn, and segments wait until it gets to them."""
    links = predictions("streams: 2, emulate: {rate: 1.5MB/s}", {"reset": 1}, 25, seed=25, largest=100000)
    assert sum(l["predicted"].get("learnt", {}).get("segments", 0) for l in links) > 0, links


def little_is_remembered():
    """16 MiB of buffer and 3 streams are 1.3 MiB of history each, less than a step of the program."""
    predictions("streams: 3", {"reset": 1}, 30, seed=23, largest=900000, sites=", buffer: 16MiB")


def dead_link_ends_all_sites(where):
    with Storm(PAIR, link="reconnect: 3s") as j:
        j.running()
        for i in where:
            j.proxies[i].refuse()
        status, text = j.end()
        assert status != 0, text
        assert " is dead: no connection for 3 s" in text and "reconnect:" in text, text
        # Each daemon at an end of a dead link says so once; others are told by them, if there is a way left.
        assert text.count(" is dead") <= 2 * len(where), text
        j.gone()


def silent_link_is_dead_too():
    """Connections are taken, and nothing comes back: no TCP error tells."""
    with Storm(PAIR, link="reconnect: 3s") as j:
        j.running()
        for p in j.proxies:
            p.chaos(1, {"discard": 1}, most=1)
            p.drop()
        status, text = j.end()
        assert status != 0 and " is dead: no connection for 3 s" in text, text
        j.gone()


def link_that_comes_back_is_not_dead():
    with Storm(PAIR, link="reconnect: 8s") as j:
        j.running()
        for p in j.proxies:
            p.refuse()
        before = j.count("bytes")
        time.sleep(3)  # not to synchronise: this is how long the network is away
        for p in j.proxies:
            p.accept()
        j.until(lambda: j.count("bytes") > before + (1 << 20), "traffic afterwards")
        j.good()
        j.gone()


def slow_line_is_not_dead():
    """A segment takes 3.3 s, a silent peer is given up after 2.7 s: the reader has to say that it lives."""
    with Storm(PAIR, link="reconnect: 8s, compress: none, streams: 1, emulate: {rate: 80kB/s}", largest=290000, seed=3) as j:
        j.until(lambda: j.count("bytes") > 300000, "traffic")
        j.good()
        assert sum(l["reconnects"] for l in j.links()) == 0, j.links()
        j.gone()


def resets_at_the_end():
    """BYE and its acknowledgement take 0.3 s each, and are among what is cut."""
    with Storm(PAIR, link="reconnect: 4s, streams: 1, emulate: {latency: 300ms}", largest=1000) as j:
        j.running(1 << 15)
        j.finish()
        while j.p.poll() is None and j.count("cut") < 60:
            time.sleep(0.8)  # how often the network breaks
            for p in j.proxies:
                p.reset()
        status, text = j.end()
        assert status == 0 and ", 0 failed" in text, text
        j.gone()


def main():
    global PAIR
    have = [f for f in flavors() if os.path.exists(f"{BUILD}/{f}/tests/storm")]
    if not have:
        print("no daemon has been built")
        return 77
    PAIR = [have[0], have[-1]]
    tests = [(t.__name__, t) for t in (
        resets_under_load, resets_of_several_streams, resets_without_tls, resets_of_what_one_site_dials, ends_at_any_byte,
        stalls_are_waited_for, half_open_connections_are_given_up, stalls_longer_than_heartbeats_allow,
        flipped_bits_under_tls, flipped_bits_under_checksums, everything_at_once, link_that_comes_back_is_not_dead,
        slow_line_is_not_dead, resets_at_the_end, silent_link_is_dead_too, predictions_survive_cuts,
        predictions_survive_cuts_of_several_streams,
        predictions_survive_cuts_of_two_gateways, lessons_survive_cuts, little_is_remembered)]
    tests.append(("dead_link_ends_all_sites", lambda: dead_link_ends_all_sites((1,))))
    tests.append(("dead_links_both_ways_end_all_sites", lambda: dead_link_ends_all_sites((0, 1))))
    only = sys.argv[1:]
    run([t for t in tests if not only or any(o in t[0] for o in only)])


if __name__ == "__main__":
    sys.exit(main())
