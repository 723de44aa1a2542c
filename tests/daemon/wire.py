"""wire.py: frames and hellos of PROTOCOL.md from Python, for tests that play a peer of the relay daemon."""
import socket
import struct

HELLO, REFUSE, MSG, SEG, ACK, BYE, ABORT = 1, 2, 3, 4, 5, 6, 7
HEADER = struct.Struct("<HBBHBBQQQQQIIiIIIHHI")


def frame(kind, body=b"", version=1, seq=0, src=0, dst=0, tag=0, msg=0, ctx=0, total=None, seg=0, offset=0, local=0):
    total = len(body) if total is None else total
    return HEADER.pack(0x5850, version, kind, 0, 0, 0, seq, len(body), total, offset, ctx, src, dst, tag, msg, seg, 0,
                       0, 0, local) + body


def hello(job, name, site, nsites=2, nranks=2, protocol=1, vendor="test", streams=1):
    job, name, vendor = job.encode(), name.encode(), vendor.encode()
    head = struct.pack("<HHHHHHHHIiI", protocol, site, nsites, 0, 1, 0, streams, 0, nranks, 32767, 0)
    repr_ = bytes([0, 1, 8, 8, 4, 16, 8, 8, 16, 1, 4, 4]) + struct.pack("<i", 1)
    return (head + repr_ + bytes(16) + bytes([len(job), len(name), len(vendor), 0]) + struct.pack("<HH", 0, 0)
            + job + name + vendor)


def read_exactly(s, n):
    data = b""
    while len(data) < n:
        part = s.recv(n - len(data))
        if not part:
            return data
        data += part
    return data


def read_frame(s):
    """(type, body) of the next frame; (None, what came) when the stream ended."""
    head = read_exactly(s, 80)
    if len(head) < 80:
        return None, head
    return head[3], read_exactly(s, struct.unpack_from("<Q", head, 16)[0])


def dial(port, seconds=10):
    s = socket.create_connection(("127.0.0.1", port), seconds)
    s.settimeout(seconds)
    return s


def ask(port, data):
    """Send data, return (type, text of the answer)."""
    with dial(port) as s:
        s.sendall(data)
        kind, body = read_frame(s)
        return kind, body.decode(errors="replace")
