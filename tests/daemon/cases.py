"""cases.py: the frame of a script of tests: functions marked with @test, and what they say of values."""
import os
import sys

import sites

TESTS = []


def forget(*more):
    """What the caller has set for PACX of its own, and the variables `more`, is not for the programs under test."""
    for name in [n for n in os.environ if n.startswith("PACX_") or n in more]:
        del os.environ[name]


def test(f):
    TESTS.append((f.__name__, f))
    return f


def equal(got, expected, what=""):
    if got != expected:
        raise AssertionError(f"{what} got {got!r}, expected {expected!r}")


def contains(text, *parts):
    for part in parts:
        if part not in text:
            raise AssertionError(f"{part!r} is not in {text!r}")


def main():
    """Those that the command line names, or all."""
    sites.run([(name, f) for name, f in TESTS if not sys.argv[1:] or name in sys.argv[1:]])
