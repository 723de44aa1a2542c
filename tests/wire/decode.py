#!/usr/bin/env python3
"""decode.py: second decoder of the PACX wire protocol, written from libpacx/wire/PROTOCOL.md alone.

usage: decode.py < LINES      each line "KIND HEX", KIND = frame, hello, world, preamble, stream or segment; prints one result line each

A result is "short", "proto", "version", or "ok" and the fields. It shares no code with the C decoder and must not:
tests/wire/check_vectors.py compares the two. It is written to be read beside the document, not to be fast.
"""
import math
import struct
import sys
import zlib

sys.dont_write_bytecode = True  # the tree stays clean
from expect import Learnt, Lengths, Range, coded_lengths  # noqa: E402

FRAME_SIZE, INLINE_MAX, HELLO_MAX, CONTROL_MAX = 80, 8112, 512, 1048576
SEGMENTS = (262144, 524288, 1048576)
RANK_MAX, MESSAGE_MAX = 2**31 - 1, 2**63 - 1
SYNC, CHECK, COLL, RESERVE, DATA, KEEP, SAME = 1, 2, 4, 8, 16, 32, 64
HELLO, REFUSE, MSG, SEG, ACK, BYE, ABORT, PING, PONG, LINKACK, CREDIT, PULL = range(1, 13)
WORLD, FIN, STATS, RATE = 128, 129, 130, 131


class Bad(Exception):
    """Carries the result word: short, proto or version."""


def need(condition, result="proto"):
    if not condition:
        raise Bad(result)


# Section 2: names in order of offset.
HEADER = struct.Struct("<HBBHBBQQQQQIIiIIIHHI")
NAMES = ("magic version type flags codec elem seq body total offset ctx src dst tag msg seg check depth via "
         "local").split()

# Section 3: which fields a type names (besides magic, version, type, seq, check), and its largest body.
MESSAGE = {"codec", "elem", "body", "total", "offset", "ctx", "src", "dst", "tag", "msg", "seg", "depth", "via", "local"}
TYPES = {
    HELLO: {"body", "total"},
    REFUSE: {"body", "total"},
    MSG: MESSAGE - {"codec"},
    SEG: MESSAGE,
    ACK: {"ctx", "src", "dst", "tag", "msg"},
    BYE: set(),
    ABORT: {"src", "dst", "tag", "body", "total"},
    PING: {"total"},
    PONG: {"total"},
    LINKACK: {"total"},
    CREDIT: {"dst", "tag", "total", "offset", "ctx"},
    PULL: {"src", "dst", "total", "tag", "msg", "seg", "via", "local"},
    WORLD: {"src", "dst", "body", "total"},
    FIN: {"src", "dst"},
    STATS: {"src", "dst", "body", "total"},
    RATE: {"src", "dst", "total"},
}
FLAGS = {MSG: SYNC | CHECK | COLL | DATA | SAME, SEG: SYNC | CHECK | COLL | RESERVE | KEEP}
BODIES = {HELLO: (1, HELLO_MAX), REFUSE: (0, CONTROL_MAX), ABORT: (0, CONTROL_MAX), WORLD: (1, CONTROL_MAX),
          STATS: (0, CONTROL_MAX)}


def frame(data):
    for got, expected in zip(data, b"PX"):
        need(got == expected)
    if len(data) > 2:
        need(data[2] == 1, "version")
    need(len(data) >= FRAME_SIZE, "short")
    f = dict(zip(NAMES, HEADER.unpack(data[:FRAME_SIZE])))
    kind = f["type"]
    need(kind in TYPES)
    need(f["flags"] & ~FLAGS.get(kind, CHECK) == 0)
    need(f["flags"] & CHECK or f["check"] == 0)
    for name in MESSAGE - TYPES[kind]:
        need(f[name] == 0)
    need(f["src"] <= RANK_MAX and f["dst"] <= RANK_MAX)
    if kind in (HELLO, REFUSE, WORLD, FIN, STATS, RATE):
        need(f["seq"] == 0)
    if kind in BODIES:
        low, high = BODIES[kind]
        need(low <= f["body"] <= high and f["total"] == f["body"])
    if kind == CREDIT:
        need(f["tag"] == 0 or (f["tag"] == 1 and f["dst"] == 0))
    if kind == MSG:
        need(f["offset"] <= min(8 * f["total"], MESSAGE_MAX))
    if kind == MSG and f["seg"] == 0:
        need(f["body"] == (0 if f["flags"] & SAME else f["total"]) and f["total"] <= INLINE_MAX)
        need(f["local"] == 0 and f["via"] == 0 and not f["flags"] & DATA)
    elif kind in (MSG, SEG):
        need(not f["flags"] & SAME)
        need(f["seg"] in SEGMENTS and 0 < f["total"] <= MESSAGE_MAX)
        if kind == MSG:
            need(f["body"] == 0)
        else:
            need(f["offset"] < f["total"] and f["offset"] % f["seg"] == 0)
            plain = min(f["seg"], f["total"] - f["offset"])
            need(0 < f["body"] < plain if f["codec"] else f["body"] == plain)
    elif kind == PULL:
        need(f["tag"] in (0, 1))
        if f["total"] == 0:
            need(f["seg"] == 0)
        else:
            need(f["seg"] in SEGMENTS and 0 < f["total"] <= MESSAGE_MAX)
    return f


def frame_link(f):
    """The rules marked [E, link], from writer to reader."""
    numbered = MSG <= f["type"] <= ABORT
    return f["type"] <= PONG and f["local"] == 0 and (f["seq"] != 0) == numbered and not f["flags"] & (DATA | SAME)


FIXED = struct.Struct("<8H IiI 12B i QQ 4B HH")
HELLO_NAMES = ("protocol site nsites gateway gateways stream streams flavor nranks tag_ub features big_endian "
               "char_signed long pointer wchar ldouble align_double align_llong align_ldouble ldformat fint flogical "
               "true").split()


def text(data):
    need(all(c >= 0x20 and c != 0x7F for c in data))
    for i, c in enumerate(data):
        need(c != 0xC2 or (i + 1 < len(data) and data[i + 1] >= 0xA0))
    return data


def hello(data):
    need(len(data) >= 2, "short")
    if data[0:2] != b"\1\0":
        raise Bad(f"version protocol={data[0] | data[1] << 8}")
    need(len(data) >= FIXED.size, "short")
    values = FIXED.unpack(data[:FIXED.size])
    h = dict(zip(HELLO_NAMES, values))
    h["session"], h["next"], njob, nname, nvendor, zero1, next_, zero2 = values[len(HELLO_NAMES):]
    need(zero1 == 0 and zero2 == 0)
    need(njob <= 64 and nname <= 64 and nvendor <= 128)
    end = FIXED.size + njob + nname + nvendor + next_
    need(end <= HELLO_MAX)
    need(len(data) >= end, "short")
    need(len(data) == end and njob >= 1 and nname >= 1)
    at = FIXED.size
    for name, n in (("job", njob), ("name", nname), ("vendor", nvendor)):
        h[name] = text(data[at:at + n])
        at += n
    need(h["site"] < h["nsites"] and h["gateway"] < h["gateways"] and h["stream"] < h["streams"])
    need(1 <= h["nranks"] <= RANK_MAX and h["tag_ub"] >= 32767)
    need(h["big_endian"] <= 1 and h["char_signed"] <= 1)
    need(h["long"] in (4, 8) and h["pointer"] in (4, 8) and h["wchar"] in (2, 4))
    need((h["ldformat"], h["ldouble"]) in ((0, 8), (1, 12), (1, 16), (2, 16), (3, 16)))
    for name in ("align_double", "align_llong", "align_ldouble"):
        need(h[name] in (1, 2, 4, 8, 16))
    need(h["fint"] in (4, 8) and h["flogical"] in (1, 2, 4, 8))
    return h


def world(data):
    need(len(data) >= 12, "short")
    protocol, nsites, self_, files, nranks = struct.unpack("<4HI", data[:12])
    need(protocol == 1, "version")
    need(len(data) <= CONTROL_MAX and nsites >= 1 and self_ < nsites and files < 2 + nsites)
    need(len(data) >= 12 + 2 * nsites, "short")
    at, hellos = 12, []
    for i in range(nsites):
        need(len(data) >= at + 2, "short")
        n, = struct.unpack("<H", data[at:at + 2])
        need(len(data) >= at + 2 + n, "short")
        try:
            h = hello(data[at + 2:at + 2 + n])
        except Bad as bad:
            raise Bad("proto" if str(bad) == "short" else str(bad).split()[0]) from bad
        need(h["site"] == i and h["nsites"] == nsites)
        hellos.append(h)
        at += 2 + n
    need(len(data) - at in (0, 10 * nsites))
    need(sum(h["nranks"] for h in hellos) == nranks <= RANK_MAX)
    shape = list(struct.iter_unpack("<HQ", data[at:])) or [(i, 0) for i in range(nsites)]
    need(all(g <= i and shape[g][0] == g for i, (g, _) in enumerate(shape)))
    need(at == len(data) or any(g != i or up for i, (g, up) in enumerate(shape)))
    return self_, nranks, files, hellos, shape


def show_frame(f):
    fields = " ".join(f"{n}={f[n]}" for n in NAMES if n != "magic" and (n != "via" or f[n]))
    return fields + f" link={'yes' if frame_link(f) else 'no'}"


def quote(data):
    return "".join(chr(c) if chr(c).isascii() and (chr(c).isalnum() or chr(c) in "._-") else f"%{c:02x}" for c in data)


def show_hello(h):
    stream_ = [f"{n}={h[n]}" for n in ("session", "next") if h[n]]
    return " ".join([f"{n}={h[n]}" for n in HELLO_NAMES] + stream_ + [f"{n}={quote(h[n])}" for n in ("job", "name", "vendor")])


def show_world(w):
    self_, nranks, files, hellos, shape = w
    head = f"nsites={len(hellos)} self={self_} nranks={nranks} files={files}"
    shapes = [f" group={g} uplink={up}" if g != i or up else "" for i, (g, up) in enumerate(shape)]
    return " ; ".join([head] + [show_hello(h) + s for h, s in zip(hellos, shapes)])


def stream(data):
    """All frames of a byte stream: type:length:crc32 of each, then how it ends."""
    out = []
    while data:
        try:
            f = frame(data)
        except Bad as bad:
            return " ".join(out + [str(bad)])
        body = data[FRAME_SIZE:FRAME_SIZE + f["body"]]
        if len(body) < f["body"]:
            return " ".join(out + ["short"])
        out.append(f"{f['type']}:{f['body']}:{zlib.crc32(body):08x}")
        data = data[FRAME_SIZE + f["body"]:]
    return " ".join(out + ["end"])


# Section 4, the preamble of a connection.
PREAMBLE = struct.Struct("<8sHBBHHHHHH16sQ16s")


def preamble(data):
    for got, expected in zip(data, b"PACXLINK"):
        need(got == expected)
    if len(data) >= 10:
        need(int.from_bytes(data[8:10], "little") == 1, "version")
    need(len(data) >= PREAMBLE.size, "short")
    _, _, kind, flags, source, target, _, _, _, zero, _, number, proof = fields = PREAMBLE.unpack(data[:PREAMBLE.size])
    need(kind in (1, 2) and flags & ~3 == 0 and source != target and zero == 0
         and (flags & 1 or number == 0 and not any(proof)))
    return fields


def show_preamble(fields):
    _, _, kind, flags, source, target, source_gateway, target_gateway, stream_number, _, job, number, proof = fields
    return (f"kind={kind} tls={flags & 1} reversed={flags >> 1} from={source} to={target} from_gateway={source_gateway} "
            f"to_gateway={target_gateway} stream={stream_number} job={job.hex()} number={number} proof={proof.hex()}")


# Section 3, codec, Prediction: codec, elem, plain length; three (or six) references of that length; the body. Of the codecs for bytes only
# raw deflate is decoded here.
HEAD = struct.Struct("<BBBBIIII")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def inflated(codec, elem, body, n):
    need(codec & ~0x80 in (0, 1) and codec != 0x80)
    if codec == 0:
        need(len(body) == n)
        return body
    need(0 < len(body) < n and (codec == 1 or elem in (2, 4, 8, 16)))
    stream_ = zlib.decompressobj(-15)
    try:
        out = stream_.decompress(body, n + 1)
    except zlib.error as error:
        raise Bad("proto") from error
    need(stream_.eof and not stream_.unused_data and len(out) == n)
    if codec & 0x80:
        count = n // elem
        shuffled, out = out, bytearray(out)
        for i in range(count):
            for k in range(elem):
                out[i * elem + k] = shuffled[k * count + i]
    return bytes(out)


def coded_by_length(w, body, n, around):
    tail = n % w
    need(4 + tail <= len(body) < n)
    first, = struct.unpack("<I", body[:4])
    need(first <= len(body) - 4 - tail)
    coder = Range(body[4:4 + first])
    numbers = coded_lengths(coder, w, around)
    need(coder.at == first)
    noise = body[4 + first:len(body) - tail]
    bits, at, out = int.from_bytes(noise, "little"), 0, []
    for a, negative in numbers:
        k = a.bit_length()
        m = k - 3 if 3 < k < 8 * w else 0
        a |= bits >> at & (1 << m) - 1
        at += m
        out.append(2 * a - negative)
    need(len(noise) == (at + 7) // 8 and bits >> at == 0)
    return b"".join(x.to_bytes(w, "little") for x in out) + body[len(body) - tail:]


def weighted(w, endian, refs, weights, i):
    """The bits of the weighted sum for number i."""
    form, whole = {4: ("f", "I"), 8: ("d", "Q")}[w]
    values = [struct.unpack((">" if endian == "big" else "<") + form, ref[i * w:(i + 1) * w])[0] for ref in refs]
    total = values[0]
    for value, weight in zip(values[1:], weights):
        total += (value - values[0]) * weight
    try:
        data = struct.pack("<" + form, total)
    except OverflowError:
        data = struct.pack("<" + form, math.inf)
    if not math.isfinite(struct.unpack("<" + form, data)[0]):
        return int.from_bytes(refs[0][i * w:(i + 1) * w], endian)
    return struct.unpack("<" + whole, data)[0]


def predicted(codec, elem, refs, body, n):
    need(elem in (4, 8, 16) and len(body) >= HEAD.size)
    how, stride, nrefs, further, sum_, *names = HEAD.unpack(body[:HEAD.size])
    time, space, order, xor, big, weights = how & 3, how >> 2 & 3, how & 16, how & 32, how & 64, []
    body, learns, row = body[HEAD.size:], how & 160 == 160, 0
    if learns:
        need((time, space, bool(order)) == (1, 0, True) and stride and further and 2 <= nrefs <= 4)
        more = max(0, nrefs - 3)
        need(len(body) >= 4 * (more + 1))
        row, body = int.from_bytes(body[4 * more:4 * more + 4], "little"), body[4 * more + 4:]
        need(row == 0 or row > 4 * stride)
    else:
        need((time or space) and bool(space) == bool(stride))
        need(further <= (5 if space == 3 else 0))
        space += further
        need(not xor or (time, space, order) == (1, 0, 0))
    if how & 128 and not learns:
        need(order and not xor and time == 1 and 2 <= nrefs <= 6)
        more = max(0, nrefs - 3)
        need(len(body) >= 4 * (more + nrefs - 1))
        weights = struct.unpack(f"<{nrefs - 1}f", body[4 * more:4 * (more + nrefs - 1)])
        need(all(map(math.isfinite, weights)))
        body = body[4 * (more + nrefs - 1):]
    elif not learns:
        need(nrefs == 0)
        nrefs = time
    need(not any(names[nrefs:]))
    w = 4 if elem == 4 else 8
    need(nrefs <= len(refs))
    count, top, most = n // w, 1 << 8 * w - 1, (1 << 8 * w) - 1
    endian = "big" if big else "little"
    if learns:
        need(row == 0 or row < count)
        lessons = Learnt(w, endian, refs[:nrefs], stride, row, count)
        lessons.learn(further)
    around = Lengths(w, count, stride or 1, row, lessons.lengths if learns else None)
    residual = coded_by_length(w, body, n, around) if codec == 0x45 else inflated(codec & ~0x40, elem, body, n)

    def numbers(data, endian):
        return [int.from_bytes(data[i * w:(i + 1) * w], endian) for i in range(count)]

    def image(x):
        return (x ^ most if x & top else x | top) if order else x

    r = [[x if xor else image(x) for x in numbers(ref, endian)] for ref in refs]
    d = numbers(residual, "little")
    if learns:
        plain = lessons.restore([x >> 1 ^ (most if x & 1 else 0) for x in d])
    elif xor:
        plain = [a ^ b for a, b in zip(d, r[0])]
    else:
        d = [x >> 1 ^ (most if x & 1 else 0) for x in d]
        for _ in range(space):
            for i in range(stride, count):
                d[i] = d[i] + d[i - stride] & most
        a, b, c = r[:3]
        expected = [0] * count
        if weights:
            expected = [image(weighted(w, endian, refs[:nrefs], weights, i)) for i in range(count)]
        for i in range(count if time and not weights else 0):
            expected[i] = (a[i], 2 * a[i] - b[i], 3 * a[i] - 3 * b[i] + c[i])[time - 1]
        plain = [a + b & most for a, b in zip(d, expected)]
        if order:
            plain = [x ^ top if x & top else x ^ most for x in plain]
    out = b"".join(x.to_bytes(w, endian) for x in plain) + residual[count * w:]
    need(crc32c(out) == sum_)
    return out


def segment(data, refs=3):
    need(len(data) >= 4, "short")
    codec, elem, n = data[0], data[1], data[2] | data[3] << 8
    need(len(data) >= 4 + refs * n, "short")
    body = data[4 + refs * n:]
    if codec & 0x3F in (2, 3):
        return "other"
    need(len(body) < n if codec else len(body) == n)
    if codec & 0x40:
        return predicted(codec, elem, [data[4 + i * n:4 + (i + 1) * n] for i in range(refs)], body, n).hex()
    return inflated(codec, elem, body, n).hex()


def decode(kind, data):
    if kind == "stream":
        return stream(data)
    read, show = {"frame": (frame, show_frame), "hello": (hello, show_hello), "world": (world, show_world),
                  "preamble": (preamble, show_preamble), "segment": (segment, str),
                  "segment6": (lambda d: segment(d, 6), str)}[kind]
    try:
        return "ok " + show(read(data))
    except Bad as bad:
        return str(bad)


def main():
    for line in sys.stdin:
        kind, _, digits = line.strip().partition(" ")
        print(decode(kind, bytes.fromhex(digits)))


if __name__ == "__main__":
    main()
