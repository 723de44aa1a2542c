"""wire.py: frames and hellos of PROTOCOL.md from Python, for tests that play a peer of the relay daemon."""
import hashlib
import socket
import struct

HELLO, REFUSE, MSG, SEG, ACK, BYE, ABORT, PING, PONG, LINKACK, CREDIT, PULL = range(1, 13)
HEADER = struct.Struct("<HBBHBBQQQQQIIiIIIHHI")
CHECK = 2


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for b in data:
        crc ^= b
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def frame(kind, body=b"", version=1, seq=0, src=0, dst=0, tag=0, msg=0, ctx=0, total=None, seg=0, offset=0, local=0, flags=0,
          checked=True):
    """checked: with the checksum that links without TLS need (not HELLO and REFUSE)."""
    total = len(body) if total is None else total
    checked = checked and kind > REFUSE
    head = [0x5850, version, kind, flags | (CHECK if checked else 0), 0, 0, seq, len(body), total, offset, ctx, src, dst, tag, msg,
            seg, 0, 0, 0, local]
    if checked:
        head[16] = crc32c(body, crc32c(HEADER.pack(*head)))
    return HEADER.pack(*head) + body


def preamble(job, from_, to, reversed_=False, tls=False, stream=0, kind=1, gateways=(0, 0), version=1):
    flags = (1 if tls else 0) | (2 if reversed_ else 0)
    return (b"PACXLINK" + struct.pack("<HBBHHHHHH", version, kind, flags, from_, to, *gateways, stream, 0)
            + hashlib.sha256(job.encode() if isinstance(job, str) else job).digest()[:16] + bytes(24))


def hello(job, name, site, nsites=2, nranks=2, protocol=1, vendor="test", streams=1, session=77, next_=0):
    """session, next_: 77, 0 of a writer; a reader says 0, 1 at first."""
    job, name, vendor = job.encode(), name.encode(), vendor.encode()
    head = struct.pack("<HHHHHHHHIiI", protocol, site, nsites, 0, 1, 0, streams, 0, nranks, 32767, 0)
    repr_ = bytes([0, 1, 8, 8, 4, 16, 8, 8, 16, 1, 4, 4]) + struct.pack("<i", 1)
    return (head + repr_ + struct.pack("<QQ", session, next_) + bytes([len(job), len(name), len(vendor), 0])
            + struct.pack("<HH", 0, 0) + job + name + vendor)


def read_exactly(s, n):
    data = b""
    while len(data) < n:
        try:
            part = s.recv(n - len(data))
        except ConnectionResetError:
            return data
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
    """Send data, return (type, text of the answer); (None, what came) when there was none."""
    with dial(port) as s:
        s.sendall(data)
        kind, body = read_frame(s)
        return kind, body.decode(errors="replace")
