#!/usr/bin/env python3
"""names_test.py: names of sites that stand for loopback in /etc/hosts (Debian's 127.0.1.1), and IPv6 addresses; speaks the protocol of
tests/run. /etc/hosts is another one in a mount namespace of the test's own."""
import os
import subprocess
import sys
import tempfile

import sites
from ports import free_ports
from sites import BUILD, flavors

TMP = tempfile.TemporaryDirectory()
UNSHARE = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]


def hostfile(left, right, bind=""):
    path, ports = TMP.name + "/hosts.yml", free_ports(2)
    with open(path, "w") as f:
        f.write(f"sites:\n  - {{name: left, host: '{left}', port: {ports[0]}, ranks: 1, mpi: {flavors()[0]}{bind}}}\n"
                f"  - {{name: right, host: '{right}', port: {ports[1]}, ranks: 1, mpi: {flavors()[0]}}}\n")
    return path


def run(hosts, program, *args, until=None):
    """What a program of PACX prints where /etc/hosts has these lines; it is ended when it has said `until`."""
    with open(TMP.name + "/hosts", "w") as f:
        f.write("127.0.0.1 localhost\n::1 localhost\n" + hosts)
    key = TMP.name + "/key"
    if not os.path.exists(key):
        subprocess.run([BUILD + "/bin/pacxctl", "keygen", key], check=True, stdout=subprocess.DEVNULL)
    p = subprocess.Popen([*UNSHARE, "sh", "-c", f'mount --bind {TMP.name}/hosts /etc/hosts && exec "$@"', "sh", f"{BUILD}/bin/{program}", *args],
                         env=dict(os.environ, PACX_KEY_FILE=key), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text = ""
    for line in p.stdout:
        text += line
        if until and until in line:
            p.terminate()
            until = None
    p.wait()
    return text


def contains(text, *parts):
    for part in parts:
        if part not in text:
            raise AssertionError(f"{part!r} is not in\n{text}")


def lacks(text, part):
    if part in text:
        raise AssertionError(f"{part!r} is in\n{text}")


def doctor_names_an_own_name_on_loopback_and_the_cure():
    text = run("127.0.1.1 vm left.ex\n127.9.9.9 x\n", "pacxctl", "doctor", "-f", hostfile("left.ex", "192.0.2.1"), "--site", "left",
               "--timeout", "1s")
    contains(text, "left.ex is 127.0.1.1 here, by /etc/hosts: no other machine can reach that",
             "say bind: 0.0.0.0 for site left, or give left.ex its own address in /etc/hosts")


def doctor_is_content_with_bind():
    lacks(run("127.0.1.1 vm left.ex\n", "pacxctl", "doctor", "-f", hostfile("left.ex", "192.0.2.1", ", bind: 0.0.0.0"), "--site", "left",
              "--timeout", "1s"), "by /etc/hosts")


def doctor_names_a_peers_name_on_loopback():
    text = run("127.0.1.1 vm right.ex\n", "pacxctl", "doctor", "-f", hostfile("127.0.0.1", "right.ex"), "--site", "left", "--timeout", "1s")
    lacks(text, "right.ex is 127.0.1.1 here: that is this machine itself")  # all sites are on this machine
    text = run("127.0.1.1 vm right.ex\n", "pacxctl", "doctor", "-f", hostfile("192.0.2.1", "right.ex", ", bind: 127.0.0.1"), "--site", "left",
               "--timeout", "1s")
    contains(text, "right.ex is 127.0.1.1 here: that is this machine itself, by its /etc/hosts", "in /etc/hosts here")


def daemon_names_an_own_name_on_loopback():
    text = run("127.0.1.1 vm left.ex\n127.0.1.2 right.ex\n", "pacxrun", "-f", hostfile("left.ex", "right.ex"), "--site", "left", "--",
               f"{BUILD}/{flavors()[0]}/tests/programs", until="by /etc/hosts")
    contains(text, "left.ex is 127.0.1.1 here, by /etc/hosts: the daemon listens where nobody on another machine can reach it; "
                   "say bind: 0.0.0.0 for site left")


def ipv6_addresses_have_brackets():
    for host in ("::1", "[::1]"):
        text = run("", "pacxrun", "-f", hostfile(host, host), "--site", "left", "--", f"{BUILD}/{flavors()[0]}/tests/programs",
                   until="right at ")
        contains(text, "right at [::1]:")
        lacks(text, "right at ::1")


def main():
    tests = [doctor_names_an_own_name_on_loopback_and_the_cure, doctor_is_content_with_bind, doctor_names_a_peers_name_on_loopback,
             daemon_names_an_own_name_on_loopback]
    try:
        free_ports(1, "::1")
        tests.append(ipv6_addresses_have_brackets)
    except OSError:
        pass
    if subprocess.run([*UNSHARE, "mount", "--bind", "/etc/hosts", "/etc/hosts"], stderr=subprocess.DEVNULL).returncode:
        print("no mount namespaces here")
        return 77
    sites.run([(t.__name__, t) for t in tests])


if __name__ == "__main__":
    sys.exit(main())
