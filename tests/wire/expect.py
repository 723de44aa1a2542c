"""expect.py: what decode.py expects of numbers: what is learnt from earlier segments, and how long residuals are (PROTOCOL.md, "Learning" and
"By length"). Written from the document alone, to be read beside it, as decode.py.
"""
import math
import struct


class Range:
    """Codec 5, first part."""
    RATES = (1, 2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6)

    def __init__(self, data):
        self.data, self.at, self.range, self.value = data, 0, 0xFFFFFFFF, 0
        self.models = {}
        for _ in range(4):
            self.byte()

    def byte(self):
        self.value = (self.value << 8 | (self.data[self.at] if self.at < len(self.data) else 0)) & 0xFFFFFFFF
        self.at += 1

    def bit(self, *model):
        p, seen = self.models.get(model, (1 << 15, 0))
        bound = (self.range >> 16) * p
        bit, s = int(self.value >= bound), self.RATES[seen]
        if bit:
            self.range -= bound
            self.value -= bound
            p -= p >> s
        else:
            self.range = bound
            p += 65536 - p >> s
        self.models[model] = (max(64, min(65472, p)), min(16, seen + 1))
        while self.range < 1 << 24:
            self.range <<= 8
            self.byte()
        return bit


class Lengths:
    """What the lengths around a number say about its own."""
    # Strides, rows and weight of each place: five of this message, then those of the one before.
    PLACES = ((-1, 0, 1229), (-2, 0, 410), (0, -1, 614), (-1, -1, 82), (1, -1, 205), (0, 0, 614), (-1, 0, 205), (1, 0, 205),
              (-2, 0, 0), (2, 0, 0), (0, -1, 205), (0, 1, 205), (-1, -1, 0), (1, -1, 0), (-1, 1, 0), (1, 1, 0))
    NEAREST = (0, 1, 2, 4, 5, 7)

    def __init__(self, w, count, stride, row, before):
        self.most, self.count, self.row, self.before = 8 * w, count, row, before
        self.places = [(a * stride + b * row, bool(b)) for a, b, _ in self.PLACES]
        self.weights = [weight for *_, weight in self.PLACES]
        self.average, self.doubt, self.known, self.around, self.taps = 40 * w, 384, [], [], []

    def look(self):
        """Lengths of the places around the next number, None where there is none; the model of zero."""
        i, self.around = len(self.known), []
        for j, (place, in_row) in enumerate(self.places):
            of = self.known if j < 5 else self.before
            there = of is not None and 0 <= i + place < self.count and (self.row or not in_row)
            self.around.append(of[i + place] if there else None)
        return tuple(self.around[j] == 0 for j in self.NEAREST)

    def foretell(self):
        self.taps = [16 * k - self.average if k else 0 for k in self.around]
        is_ = self.average + (sum(a * b for a, b in zip(self.taps, self.weights)) >> 12)
        return max(16, min(16 * self.most, is_))

    def doubts(self):
        return sum(self.doubt >= x for x in (179, 256, 384, 563, 819))

    def adapt(self, foretold, k):
        surprise = max(-128, min(128, 16 * k - foretold))
        pace = abs(surprise) * 328 * 4096 // (1024 + sum(x * x for x in self.taps)) * (1 if surprise > 0 else -1)
        self.weights = [max(-32767, min(32767, a + (pace * x >> 12))) for a, x in zip(self.weights, self.taps)]
        self.doubt += 16 * abs(surprise) - self.doubt >> 3
        self.average = 3 * self.average + 16 * k >> 2


def coded_lengths(coder, w, around):
    """Magnitude without noise, and sign, of each number."""
    out, last = [], 0
    for _ in range(around.count):
        if coder.bit("zero", around.look()):
            out.append((0, 0))
            around.known.append(0)
            last = 0
            continue
        foretold, doubts = around.foretell(), around.doubts()
        at, part = foretold + 8 >> 4, (foretold + 8 & 15) >> 2
        k = at
        if coder.bit("other", doubts, part):
            up = 1 if at == 1 else 0 if at == 8 * w else coder.bit("above", doubts, part)
            while True:
                k += 1 if up else -1
                if k == (8 * w if up else 1) or not coder.bit("on", up, doubts, min(abs(k - at), 15)):
                    break
        around.adapt(foretold, k)
        around.known.append(k)
        if k == 8 * w:
            out.append((1 << k - 1, 1))
            last = 1
            continue
        negative = coder.bit("sign", last)
        last = 1 + negative
        a, how_far = 1 << k - 1, max(-2, min(2, k - at))
        if k > 1:
            high = coder.bit("top", how_far, 0)
            a |= high << k - 2
            if k > 2:
                a |= coder.bit("top", how_far, 1 + high) << k - 3
        out.append((a, negative))
    return out


class Learnt:
    """What is learnt from references (PROTOCOL.md, "Learning")."""

    def __init__(self, w, endian, refs, stride, row, count):
        self.w, self.endian, self.count, self.newest = w, endian, count, refs[0]
        self.form = (">" if endian == "big" else "<") + {4: "f", 8: "d"}[w]
        self.top, self.most = 1 << 8 * w - 1, (1 << 8 * w) - 1
        self.values = [[self.value(self.bytes_of(ref, i)) for i in range(count)] for ref in refs]
        self.e = [[0.0] * count] + [[self.finite(a - b) for a, b in zip(newer, older)]
                                    for newer, older in zip(self.values, self.values[1:])]
        self.refs, self.places, self.weights, self.lengths = refs, [], [], []
        for k in range(len(refs) - 1):
            for a in range(-2, 3) if row else (0,):
                self.places += [(k, a * row + b * stride) for b in range(-2, 3) if k or (a, b) < (0, 0)]

    @staticmethod
    def finite(x):
        return x if math.isfinite(x) else 0.0

    def bytes_of(self, ref, i):
        return ref[i * self.w:(i + 1) * self.w]

    def value(self, data):
        return struct.unpack(self.form, data)[0]

    def image(self, data):
        number = int.from_bytes(data, self.endian)
        return number ^ self.most if number & self.top else number | self.top

    def expected(self, ref, i, more):
        """The image of number i of ref and `more`, or of that number."""
        before = self.bytes_of(self.refs[ref], i)
        try:
            data = struct.pack(self.form, self.values[ref][i] + more)
        except OverflowError:
            data = before
        return self.image(data if math.isfinite(self.value(data)) else before)

    def sample(self, i, later):
        return [self.e[k + later][i + o] if 0 <= i + o < self.count else 0.0
                for k, o in self.places] + [0.0] * (64 - len(self.places))

    def learn(self, keep):
        """The weights of each block, and how long what was left of each number of the newest reference is."""
        weights, mean, r = [0.0] * 64, 0.0, [[0.0] * 64 for _ in self.places]
        for i in range(0, self.count, 64):
            block = []
            for j in range(i, min(i + 64, self.count)):
                x, y = self.sample(j, 1), self.e[1][j]
                more, by = summed(x, weights), 0.0
                left = self.image(self.bytes_of(self.newest, j)) - self.expected(1, j, more) & self.most
                self.lengths.append(min(left, self.most + 1 - left).bit_length())
                error = y - more
                if math.isfinite(error):
                    mean = 0.875 * mean + 0.125 * abs(error) if mean > 0 else abs(error)
                    by = 1 / math.sqrt(mean) if mean > 0 else 0.0
                    x[63] = y
                block.append([a * by for a in x] if by > 0 and math.isfinite(by) else [0.0] * 64)
            weights, r = lesson(block, r, len(self.places), keep / 256)
            self.weights.append(weights)

    def restore(self, d):
        """The numbers whose images are d from what is learnt."""
        plain = []
        for i in range(self.count):
            number = d[i] + self.expected(0, i, summed(self.sample(i, 0), self.weights[i // 64])) & self.most
            plain.append(number ^ self.top if number & self.top else number ^ self.most)
            self.e[0][i] = self.finite(self.value(plain[i].to_bytes(self.w, self.endian)) - self.values[0][i])
        return plain


def summed(x, weights):
    """Of 64 products: eight sums, of each eighth, then of those."""
    s = [a * b for a, b in zip(x[:8], weights)]
    for j in range(8, 64):
        s[j % 8] += x[j] * weights[j]
    for half in (4, 2, 1):
        s = [s[q] + s[q + half] for q in range(half)]
    return s[0]


def lesson(block, r, taps, keep):
    """Weights and sums after a block of samples."""
    u, inverse = [], []
    for j in range(taps):
        for k in range(j, 64):
            total = r[j][k] * keep
            for x in block:
                total += x[k] * x[j]
            r[j][k] = total
        line = r[j][:]
        for above in u:
            for k in range(j, 64):
                line[k] -= above[k] * above[j]
        pivot = line[j] + r[j][j] * 2.0 ** -44
        inverse.append(1 / math.sqrt(pivot) if pivot > 0 else 0.0)
        u.append([a * inverse[j] for a in line])
    weights, z = [0.0] * 64, [line[63] for line in u]
    for j in range(taps - 1, -1, -1):
        weights[j] = z[j] * inverse[j]
        for k in range(j):
            z[k] -= u[k][j] * weights[j]
    if all(map(math.isfinite, weights)):
        return weights, r
    return [0.0] * 64, [[0.0] * 64 for _ in range(taps)]
