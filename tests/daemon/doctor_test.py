#!/usr/bin/env python3
"""pacxctl: doctor with each kind of failure, all on loopback. This script plays the other site where pacxctl answer is too honest for
it.

usage: tests/daemon/doctor_test.py [TEST...]        PACX_BUILD: the build directory (build)
"""
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time

from cases import contains, equal, main, test
from ctl import Answer, BUILD, ctl, DIR, doctor, failed, fake, hosts, PLAIN, SECONDS, Server, take
from ports import free_ports


@test
def doctor_is_content_with_answer():
    hosts()
    ctl("keygen", "job.key")
    with Answer(PACX_KEY_FILE="job.key") as a, Answer(site="left", PACX_KEY_FILE="job.key"):
        p = ctl("doctor", "-f", "hosts.yml", PACX_KEY_FILE="job.key")
    equal(p.returncode, 0, p.stdout + a.out)
    hops = [l.split("  ")[1].strip() for l in p.stdout.splitlines() if l.startswith("left -> right")]
    equal(hops, ["name", "connect", "tls", "identity", "version", "data", "clock", "mtu"])
    contains(p.stdout, "and site right has proved that it has the job's key", "right -> left", "all 18 tests are ok",
             "site right, gateway 0, job ")
    contains(a.out, "site left tests gateway 0 of right")


@test
def doctor_needs_no_key_before_the_job():
    hosts()
    with Answer() as a:
        p = doctor()
    equal(p.returncode, 0, p.stdout)
    contains(p.stdout, "there is no key here, so who is there was not proved")
    contains(a.out, "site right has no key here")


@test
def doctor_tests_every_gateway_from_the_side_that_dials():
    ports = free_ports(2)
    hosts(left=f", host: 127.0.0.1, gateways: [{{port: {ports[0]}}}, {{port: {ports[1]}}}]", right=", listen: no", links=PLAIN)
    with Answer(site="left", lines=2):
        p = doctor(site="right")
        equal(p.returncode, 0, p.stdout)
        contains(p.stdout, "right -> left/0  identity  ok    site left, gateway 0", "right -> left/1  identity  ok    site left, gateway 1")
        p = doctor()
    equal(p.returncode, 0, p.stdout)
    contains(p.stdout, "left -> right  right dials for both directions; run pacxctl doctor there")
    p = ctl("answer", "-f", "hosts.yml", "--site", "right")
    equal(p.returncode, 1)
    contains(p.stderr, "nobody can test this site from outside")


@test
def doctor_names_a_name_that_is_unknown():
    hosts(right=", host: no-such-host.invalid, port: PORT")
    failed(doctor(timeout="5s"), "name", "the address of no-such-host.invalid cannot be found", "correct the name in the hostfile")


@test
def doctor_explains_a_refused_connection():
    port = hosts()[1]
    failed(doctor(), "connect", f"127.0.0.1 port {port} refuses the connection: nothing listens there",
           "pacxctl answer -f hosts.yml --site right")


@test
def doctor_explains_a_connection_without_answer():
    port = hosts()[1]
    with socket.socket() as s:  # a full queue takes no connection and says nothing, like a firewall that drops
        s.bind(("127.0.0.1", port))
        s.listen(0)
        clients = [socket.socket() for _ in range(4)]
        for c in clients:
            c.setblocking(False)
            c.connect_ex(("127.0.0.1", port))
        failed(doctor(timeout="1s"), "connect", f"no answer from 127.0.0.1 port {port} within 1 s", "firewall", f"TCP port {port}")
        for c in clients:
            c.close()


@test
def doctor_explains_a_missing_route():
    hosts(right=", host: '2001:db8::1', port: PORT")
    p = doctor(timeout="1s")
    if "no answer from" in p.stdout:
        return  # this machine has a route for anything
    failed(p, "connect", "2001:db8::1", "")


@test
def doctor_knows_a_port_that_is_not_pacx():
    port = hosts()[1]
    with Server(port, lambda c: (c.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n" * 10), c.recv(1000), c.recv(1000))):
        failed(doctor(), "tls", "another program")
    with Server(port, lambda c: None):
        failed(doctor(), "tls", "another program may have the port, or the hostfile or PACX_JOB is not the same at both sites")
    with Server(port, lambda c: (c.recv(1000), c.recv(1000), c.recv(1000))):
        failed(doctor(timeout="1s"), "tls", "no answer in time", "it is not PACX, or a firewall lets a connection through but no bytes")
    port = hosts(links=PLAIN)[1]
    with Server(port, lambda c: (c.sendall(b"220 mail.example.org ESMTP\r\n" * 10), c.recv(1000), c.recv(1000))):
        failed(doctor(), "pacx", "not of PACX")


@test
def doctor_finds_another_key():
    hosts()
    for n in "a.key", "b.key":
        if not os.path.exists(f"{DIR.name}/{n}"):
            ctl("keygen", n)
    with Answer(PACX_KEY_FILE="a.key") as a:
        failed(doctor(PACX_KEY_FILE="b.key"), "tls", "the other side has another key", "copy the same key file (pacxctl keygen) to both sites")
        failed(doctor(), "tls", "there is no key here")
    contains(a.out, "another key")
    os.chmod(DIR.name + "/b.key", 0o644)
    failed(doctor(PACX_KEY_FILE="b.key"), "key", "chmod 600")
    with open(DIR.name + "/a.key") as f:  # the variable that pacxrun sets
        key = f.read().strip()
    with Answer(PACX_KEY_FILE="a.key"):
        equal(doctor(PACX_KEY=key).returncode, 0)


@test
def doctor_finds_another_job_or_hostfile():
    ports = hosts()
    with Answer(PACX_JOB="other") as a:
        failed(doctor(), "tls", "PACX_JOB is not the same at both sites")
    contains(a.out, "it is of another job; use the same hostfile (and PACX_JOB) at all sites")
    with open(DIR.name + "/hosts.yml") as f:
        text = f.read()
    with open(DIR.name + "/plain.yml", "w") as f:
        f.write(text + f"links: [{PLAIN}]\n")
    with Answer() as a:
        failed(doctor(name="plain.yml"), "pacx", "")
    contains(a.out, "it wants no TLS, but here the link has it")
    with Answer(name="plain.yml") as a:
        failed(doctor(), "tls", "")
    contains(a.out, "it wants TLS, but here the link has security: none")
    del ports


@test
def doctor_finds_another_site_or_version_or_clock():
    port = hosts(links=PLAIN)[1]
    with Server(port, fake(site=0, name="left")):
        failed(doctor(), "identity", "it is site left (1 of 2), gateway 0; gateway 0 of right (2 of 2) was dialled", "same hostfile")
    with Server(port, fake(gateway=1)):
        failed(doctor(), "identity", "gateway 1")
    with Server(port, fake(protocol=77, version="9.9")):
        failed(doctor(), "version", "it speaks version 77 of the protocol (PACX 9.9)", "install the same version of PACX")
    with Server(port, fake(clock=-7200)):
        failed(doctor(), "clock", "its clock is 7200 s behind", "NTP")
    with Server(port, fake(clock=30, version="0.1.1\x1b[2J")):
        p = doctor()
    equal(p.returncode, 0, p.stdout)
    contains(p.stdout, "+30.0", "times in the logs of the sites differ as much", "PACX 0.1.1?[2J; here is ")


@test
def doctor_names_what_is_stored_otherwise_and_what_it_costs():
    port = hosts(links=PLAIN)[1]
    if os.uname().machine != "x86_64":
        return
    for stores, said in (
            ([1, 0, 8, 8, 4, 16, 8, 8, 8, 2, 4, 4, 0, 0, 0, 1], ["bytes are in", "endian order", "long double is IEEE's 128 bits"]),
            ([0, 1, 4, 4, 4, 12, 4, 4, 4, 1, 4, 4, 1, 0, 0, 0], ["long has 32 bits, not 64: values beyond 2^31 are errors there",
                                                             "MPI_Aint has 32 bits, not 64: values beyond 2^31 are errors there"])):
        with Server(port, fake(stores=bytes(stores))):
            p = doctor()
        equal(p.returncode, 0, p.stdout)
        contains(p.stdout, "data      ok    stored unlike here: at site right ", *said)
    with Server(port, fake(stores=bytes(16))):
        failed(doctor(), "pacx", "not of PACX")


@test
def doctor_finds_packets_that_do_not_pass():
    port = hosts(links=PLAIN)[1]
    with Server(port, fake(echo=False)):
        failed(doctor(timeout="1s"), "mtu", "short packets pass, 32 KiB do not", "MTU")


@test
def doctor_checks_the_own_port():
    port = hosts(left=", host: 127.0.0.1, port: PORT, bind: 198.51.100.7")[0]
    with Answer():
        failed(doctor(), "listen", f"198.51.100.7 port {port}", "name an address of this machine with bind:")
    hosts()
    with Answer(), Answer(site="left"):
        contains(doctor().stdout, "left  listen    ok", "is in use: by the job, pacxctl answer or another program")


def http_proxy(verdict):
    def serve(c):
        request = b""
        while b"\r\n\r\n" not in request:
            request += c.recv(1000)
        host, port = re.match(rb"CONNECT ([^ :]+):(\d+) ", request).groups()
        if verdict != 200:
            c.sendall(b"HTTP/1.1 %d Forbidden\r\n\r\n" % verdict)
            return
        with socket.create_connection((host.decode(), int(port)), SECONDS) as up:
            c.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            pump(c, up)
    return serve


def pump(a, b):
    both = {a: b, b: a}
    while True:
        for s in select.select([a, b], [], [], SECONDS)[0] or [None]:
            data = s.recv(65536) if s else b""
            if not data:
                return
            both[s].sendall(data)


@test
def doctor_goes_through_a_proxy():
    proxy = free_ports()[0]
    hosts(links=f"{{default: , proxy: 'http://127.0.0.1:{proxy}'}}")
    failed(doctor(), "connect", f"127.0.0.1 port {proxy} refuses", "proxy")
    with Server(proxy, http_proxy(403)):
        failed(doctor(), "proxy", "403", "have the proxy allow 127.0.0.1 port ")
    with Server(proxy, http_proxy(200)), Answer():
        p = doctor()
    equal(p.returncode, 0, p.stdout)
    contains(p.stdout, "of the proxy", "it has connected to 127.0.0.1 port ")


@test
def doctor_goes_through_a_command():
    with open(DIR.name + "/nc.py", "w") as f:
        f.write("import os, select, socket, sys\n"
                "s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)\n"
                "while True:\n"
                "    for x in select.select([0, s], [], [], 60)[0] or sys.exit():\n"
                "        data = os.read(0, 65536) if x == 0 else s.recv(65536)\n"
                "        if not data:\n"
                "            sys.exit()\n"
                "        if x == 0:\n"
                "            s.sendall(data)\n"
                "        else:\n"
                "            os.write(1, data)\n")
    hosts(links=f"{{default: , dial: '{sys.executable} nc.py %h %p'}}")
    with Answer():
        p = doctor()
    equal(p.returncode, 0, p.stdout + p.stderr)
    contains(p.stdout, "left -> right  command   ok    started: ", "32 KiB came back")
    failed(doctor(), "tls", "the command of dial: has ended, or leads elsewhere")


def relay():
    """Two connections whose preambles differ only in who is the writer, number and proof belong together."""
    waiting, lock = {}, threading.Lock()

    def serve(c):
        pre = bytearray(take(c, 64))
        mine = pre[11] & 2
        pre[11] &= 1
        del pre[40:]
        with lock:
            other = waiting.pop((bytes(pre), mine ^ 2), None)
            if other is None:
                met = threading.Event()
                waiting[bytes(pre), mine] = (c, met)
        if other is None:
            met.wait(SECONDS)  # the other thread moves the bytes
            return
        with other[0]:
            pump(c, other[0])
        other[1].set()
    return serve


@test
def doctor_meets_answer_at_a_relay():
    port = free_ports()[0]
    hosts(left=", listen: no", right=", listen: no", links=f"{{default: , relay: '127.0.0.1:{port}'}}")
    failed(doctor(), "connect", f"pacxd --relay 127.0.0.1:{port}")
    with Server(port, relay()):
        failed(doctor(timeout="1s"), "tls", "nobody has come to the other side of the relay", "pacxctl answer -f hosts.yml --site right")
    port = free_ports()[0]
    hosts(left=", listen: no", right=", listen: no", links=f"{{default: , relay: '127.0.0.1:{port}'}}")
    with Server(port, relay()), Answer():
        p = doctor()
        equal(p.returncode, 0, p.stdout)
        contains(p.stdout, "of the relay", "site right, gateway 0")
        p = doctor()  # and again
        equal(p.returncode, 0, p.stdout)


@test
def daemons_of_a_running_job_answer_too():
    program = BUILD + "/openmpi/tests/stdin_rank0"
    if not os.path.exists(program):
        return  # not built
    hosts(left=", host: 127.0.0.1, port: PORT, mpi: openmpi", right=", host: 127.0.0.1, port: PORT, mpi: openmpi")
    if not os.path.exists(DIR.name + "/job.key"):
        ctl("keygen", "job.key")
    env = {**os.environ, "PACX_JOB": "running", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    job = subprocess.Popen([BUILD + "/bin/pacxrun", "-f", "hosts.yml", "--key", "job.key", "--", program], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=DIR.name)
    try:
        end = time.monotonic() + SECONDS
        while True:
            p = doctor(PACX_JOB="running", PACX_KEY_FILE="job.key")
            if p.returncode == 0 or time.monotonic() > end:
                break
            time.sleep(0.2)  # it is starting
        equal(p.returncode, 0, p.stdout)
        contains(p.stdout, "site right, gateway 0, job running, which runs", "32 KiB came back")
        p = ctl("probe", "-f", "hosts.yml", "--site", "left", PACX_JOB="running", PACX_KEY_FILE="job.key")
        contains(p.stdout, "a job runs there; its bandwidth is not disturbed by a test")
        failed(doctor(PACX_KEY_FILE="job.key"), "tls", "PACX_JOB is not the same at both sites")
    finally:
        out, err = job.communicate("hello\n", timeout=SECONDS)
    equal(job.returncode, 0, out + err)
    contains(err, "it is of another job")


if __name__ == "__main__":
    main()
