#!/usr/bin/env python3
"""flood_long.py: flood_test.py with 300 and 3000 connections a second, at round trips of 0 to 0.6 s, with TLS, without, and dialled for
both directions; it prints what it measures. For `make check-long`.

usage: flood_long.py [TEST...]
"""
import sys

sys.dont_write_bytecode = True
import flood_test  # noqa: E402

LINKS = (("tls", "security: tls"), ("plain", "security: none"), ("one_site_dials", "dial: s0"))

if __name__ == "__main__":
    sys.exit(flood_test.main([
        (f"{name}_at_{rate}_and_{rtt:g}_s", lambda a=(rate, rtt, link): flood_test.flooded(*a, cuts=5))
        for rate in (300, 3000) for rtt in (0, 0.1, 0.5, 0.6) for name, link in LINKS]))
