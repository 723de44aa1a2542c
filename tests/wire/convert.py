#!/usr/bin/env python3
"""convert.py: numbers as machines store them, written down by exact arithmetic and nothing of libpacx: the golden vectors of convert.c.

usage: convert.py            prints the vectors
       convert.py --check    compares them with convert.vec (protocol of tests/test.h)

A line: ATOM VALUE, then for each machine its bytes in hexadecimal, marked "~" if the machine rounds the value and "!" if it cannot
hold it (then they are what is left: the lowest bits, or an infinity). tests/unit/convert_test.c converts from each machine that holds
a value exactly to every machine.
"""
import os
import struct
import sys
from fractions import Fraction

DOUBLE, X87, QUAD, PAIR = range(4)
# name: big endian, long, pointer, wchar_t, long double's size and format, INTEGER, LOGICAL, .TRUE.
MACHINES = {
    "x86-64": (0, 8, 8, 4, 16, X87, 4, 4, 1),
    "aarch64": (0, 8, 8, 4, 16, QUAD, 4, 4, 1),
    "i386": (0, 4, 4, 4, 12, X87, 4, 4, 1),
    "s390x": (1, 8, 8, 4, 16, QUAD, 4, 4, 1),
    "ppc": (1, 4, 4, 4, 16, PAIR, 4, 4, 1),
    "ppc64le": (0, 8, 8, 4, 16, PAIR, 4, 4, 1),
    "armhf": (0, 4, 4, 4, 8, DOUBLE, 4, 4, 1),
    "m68k": (1, 4, 4, 4, 8, DOUBLE, 4, 1, -1),
    "win64": (0, 4, 8, 2, 8, DOUBLE, 4, 4, -1),
    "ilp64": (1, 8, 8, 4, 16, QUAD, 8, 8, -1),
}
# bits of the significand, largest and smallest exponent, width of the exponent's field
SHAPE = {DOUBLE: (53, 1023, -1022, 11), X87: (64, 16383, -16382, 15), QUAD: (113, 16383, -16382, 15)}
INF, NAN = "inf", "nan"


def power(n):
    return Fraction(2) ** n


def exponent(a):
    """The largest e with 2^e <= a."""
    e = a.numerator.bit_length() - a.denominator.bit_length()
    return e if power(e) <= a else e - 1


def rounded(v, shape):
    """v to the nearest number of the format, ties to even; INF beyond its range."""
    bits, emax, emin, _ = SHAPE[shape]
    if v == 0:
        return v
    a = abs(v)
    unit = power(max(exponent(a), emin) - bits + 1)
    a = round(a / unit) * unit  # Python's round is to even
    if a >= power(emax + 1):
        return INF
    return a if v > 0 else -a


def encode(v, shape, negative):
    """A number of the format as an integer."""
    bits, emax, emin, width = SHAPE[shape]
    hidden = 0 if shape == X87 else 1
    fraction_bits = bits - hidden
    every = (1 << width) - 1
    if v == NAN:
        field, fraction = every, (3 if shape == X87 else 1) << (fraction_bits - 2 + hidden)
    elif v == INF:
        field, fraction = every, 0 if hidden else 1 << 63
    elif v == 0:
        field, fraction = 0, 0
    else:
        a = abs(v)
        e = max(exponent(a), emin)
        significand = int(a / power(e - bits + 1))
        assert significand * power(e - bits + 1) == a
        field = e + emax if significand >> (bits - 1) else 0
        fraction = significand & ((1 << fraction_bits) - 1)
    return (int(negative) << width | field) << fraction_bits | fraction


def order(value, size, big):
    return value.to_bytes(size, "big" if big else "little")


def floating(v, negative, form, size, big):
    """The bytes, and the mark."""
    if form == PAIR:
        high = v if v in (INF, NAN) else rounded(v, DOUBLE)
        low = Fraction(0) if high in (INF, NAN) else rounded(v - high, DOUBLE)
        data = order(encode(high, DOUBLE, negative), 8, big) + order(encode(low, DOUBLE, low < 0), 8, big)
        exact = high if high in (INF, NAN) else high + low
    else:
        exact = v if v in (INF, NAN) else rounded(v, form)
        number = encode(exact, form, negative)
        data = order(number, size, big) if form != X87 else order(number, 10, big) + bytes(size - 10)
    return data, "" if exact == v else "!" if exact == INF else "~"


def integer(v, size, big, signed):
    low, high = (-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1) if signed else (0, (1 << (8 * size)) - 1)
    return order(v & ((1 << (8 * size)) - 1), size, big), "" if low <= v <= high else "!"


SIGNED = [0, 1, -1, 100, -128, 2**31 - 1, -2**31]
LARGE = [2**31, -2**31 - 1, 2**32, 2**63 - 1, -2**63, 0x0102030405060708]
ONE = Fraction(1)
NUMBERS = [
    ("1", ONE), ("-1.5", Fraction(-3, 2)), ("1/3", Fraction(1, 3)), ("1+2^-52", ONE + power(-52)),
    ("1+2^-53", ONE + power(-53)), ("1+3*2^-53", ONE + 3 * power(-53)), ("1+2^-53+2^-112", ONE + power(-53) + power(-112)),
    ("1+2^-63", ONE + power(-63)), ("1+2^-64", ONE + power(-64)), ("1-2^-113", ONE - power(-113)),
    ("-1-2^-112", -ONE - power(-112)), ("2-2^-112", 2 * ONE - power(-112)), ("1+2^-100", ONE + power(-100)),
    ("pi", Fraction(0x1921FB54442D18469898CC51701B8, 1 << 111)), ("largest double", power(1024) - power(971)),
    ("almost 2^1024", power(1024) - power(969)), ("2^1024", power(1024)), ("-2^16383", -power(16383)),
    ("1+3*2^-64", ONE + 3 * power(-64)), ("1+2^-64+2^-112", ONE + power(-64) + power(-112)), ("largest quad", power(16384) - power(16271)),
    ("2^-1022", power(-1022)), ("2^-1074", power(-1074)), ("-3*2^-1074", -3 * power(-1074)), ("2^-1075", power(-1075)),
    ("2^-1075+2^-1080", power(-1075) + power(-1080)), ("-2^-1080", -power(-1080)), ("2^-16382", power(-16382)),
    ("2^-16445", power(-16445)), ("2^-16494", power(-16494)), ("-5*2^-16494", -5 * power(-16494)),
]


def vectors():
    def line(atom, name, one):
        cells = []
        for big, *rest in MACHINES.values():
            data, mark = one(bool(big), *rest)
            cells.append(mark + data.hex())
        return " ".join([atom, name.replace(" ", "_")] + cells)

    yield "# made by convert.py"
    yield "machines " + " ".join(f"{n}:{','.join(map(str, m))}" for n, m in MACHINES.items())
    for size, name in ((1, "BYTE"), (2, "INT2"), (4, "INT4"), (8, "INT8")):
        v = int.from_bytes(bytes(range(0x81, 0x81 + size)), "big")
        yield line(name, hex(v), lambda big, *_, s=size, v=v: (order(v, s, big), ""))
    for v in SIGNED + LARGE:
        yield line("LONG", str(v), lambda big, long, *_, v=v: integer(v, long, big, True))
        yield line("AINT", str(v), lambda big, _, pointer, *r, v=v: integer(v, pointer, big, True))
        yield line("INTEGER", str(v), lambda big, *r, v=v: integer(v, r[5], big, True))
    for v in (0, 1, 2**31, 2**32 - 1, 2**32, 2**64 - 1):
        yield line("ULONG", str(v), lambda big, long, *_, v=v: integer(v, long, big, False))
    for v in (65, 0xE9, 0xFFFF, 0x10000, 0x1F600):
        yield line("WCHAR", str(v), lambda big, *r, v=v: integer(v, r[2], big, False))
    for v in (1.5, -0.0, 5e-324, float("inf"), 0.1):
        if v != 5e-324:
            yield line("FLOAT", str(v), lambda big, *_, v=v: (struct.pack(">f" if big else "<f", v), ""))
        yield line("DOUBLE", str(v), lambda big, *_, v=v: (struct.pack(">d" if big else "<d", v), ""))
    special = [("0", Fraction(0), False), ("-0", Fraction(0), True), ("inf", INF, False), ("-inf", INF, True), ("nan", NAN, False)]
    for name, v, negative in special + [(n, v, v < 0) for n, v in NUMBERS]:
        yield line("LDOUBLE", name, lambda big, *r, v=v, s=negative: floating(v, s, r[4], r[3], big))
        yield line("REAL16", name,
                   lambda big, *r, v=v, s=negative: floating(v, s, PAIR if r[4] == PAIR else QUAD, 16, big))
    for v in (0, 1):
        yield line("LOGICAL", str(v), lambda big, *r, v=v: (order(v * r[7] & (1 << 8 * r[6]) - 1, r[6], big), ""))
        for size in (1, 2, 4, 8):
            yield line(f"LOGICAL{size}", str(v),
                       lambda big, *r, v=v, s=size: (order(v * r[7] & (1 << 8 * s) - 1, s, big), ""))


def main():
    if sys.argv[1:] != ["--check"]:
        print("\n".join(vectors()))
        return 0
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "convert.vec"), encoding="ascii") as lines:
        same = lines.read().splitlines() == list(vectors())
    print("1..1\n" + ("" if same else "not ") + "ok the_vectors_are_what_exact_arithmetic_says")
    return not same


if __name__ == "__main__":
    sys.exit(main())
