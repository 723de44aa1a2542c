#!/usr/bin/env python3
"""Ports to listen on: below those that the kernel gives to connections and to whoever asks for any, since tests run beside one another and
beside others, and a port that is only named in a hostfile is nobody's until the daemon has it. ports.py N prints N of them."""
import random
import socket
import sys


def free_ports(n=1, host="127.0.0.1"):
    """N ports of HOST that nobody has now; OSError: it has none."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        first = int(f.read().split()[0])
    low, high = (2000, first - 1) if first > 12000 else (first, 60000)
    ports = []
    for port in random.sample(range(low, high), 2000):
        if len(ports) == n:
            break
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
            try:
                s.bind((host, port))
            except OSError:
                continue
        ports.append(port)
    else:
        raise OSError(f"no {n} free ports at {host}")
    return ports


if __name__ == "__main__":
    print(*free_ports(int(sys.argv[1])))
