#!/usr/bin/env python3
"""check_vectors.py: golden vectors against both decoders, then random changes of them against each other.

usage: check_vectors.py C-DECODER      (build/tests/decode; or what runs that of another machine, and it)

A vector file in vectors/ holds lines "kind K", "hex DIGITS" (repeated, joined; blanks ignored) and "expect RESULT"; lines
with # are comments. RESULT is what decode.py prints. Vectors are golden: a change of the code must not change them.
Speaks the protocol of tests/test.h.
"""
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True  # the tree stays clean
import decode  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CHANGES = 12000


def load(path):
    vector = {"kind": None, "hex": "", "expect": None}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            key, _, value = line.strip().partition(" ")
            if not key or key.startswith("#"):
                continue
            if key not in vector:
                raise SystemExit(f"{path}: unknown key {key}")
            vector[key] = vector["hex"] + value.replace(" ", "") if key == "hex" else value
    return vector["kind"], bytes.fromhex(vector["hex"]), vector["expect"]


def run_c(program, cases):
    text = "".join(f"{kind} {data.hex()}\n" for kind, data in cases)
    done = subprocess.run(program, input=text, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != len(cases):
        print(f"  {program}: exit status {done.returncode}, {len(lines)} results for {len(cases)} inputs\n"
              f"{done.stderr}")
    return lines + ["nothing"] * (len(cases) - len(lines))


def change(rng, data):
    data = bytearray(data)
    what = rng.randrange(6)
    if what == 0:
        return bytes(data[:rng.randrange(len(data) + 1)])
    if what == 1:
        return bytes(data) + rng.randbytes(rng.randrange(1, 4))
    for _ in range(1 + rng.randrange(2) if data else 0):
        at = rng.randrange(len(data))
        if what == 2:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 3:
            data[at] = rng.choice((0, 1, 2, 4, 127, 128, 255))
        elif what == 4:
            data[at] = (data[at] + rng.choice((-1, 1))) & 255
        else:
            n = min(rng.choice((2, 4, 8)), len(data) - at)
            data[at:at + n] = rng.choice((0, 1, 1968, 8112, 8113, 262144, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 63) - 1,
                                          (1 << 64) - 1)).to_bytes(8, "little")[:n]
    return bytes(data)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    names = sorted(n for n in os.listdir(os.path.join(HERE, "vectors")) if n.endswith(".vec"))
    vectors = [load(os.path.join(HERE, "vectors", n)) for n in names]
    print(f"1..{2 * len(vectors) + 1}")
    failed = 0

    def result(name, good):
        nonlocal failed
        failed += not good
        print(f"{'ok' if good else 'not ok'} {name}")

    in_c = run_c(sys.argv[1:], [v[:2] for v in vectors])
    for name, (kind, data, expect), c in zip(names, vectors, in_c):
        for who, got in (("python", decode.decode(kind, data)), ("c", c)):
            if got != expect:
                print(f"  vectors/{name}: the {who} decoder says\n    {got}\n  expected\n    {expect}")
            result(f"{name[:-4]}_in_{who}", got == expect)

    rng = random.Random(5850)
    cases, seen = [], {}
    while len(cases) < CHANGES:
        kind, data, _ = vectors[len(cases) % len(vectors)]
        cases.append((kind, change(rng, data)))
    differences = 0
    for (kind, data), c in zip(cases, run_c(sys.argv[1:], cases)):
        python = decode.decode(kind, data)
        word = python.split()[0] if kind != "stream" else python.split()[-1]
        seen[word] = seen.get(word, 0) + 1
        if python != c:
            differences += 1
            if differences <= 5:
                print(f"  {kind} {data.hex()}\n    python: {python}\n    c:      {c}")
    print(f"  {len(cases)} changed vectors: {seen}")
    result("decoders_agree_on_changed_vectors", differences == 0)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
