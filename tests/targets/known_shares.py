# SPDX-License-Identifier: BSD-2-Clause
"""Functions with known shares of the CPU time: run.py known_shares SECONDS|told [LOOPS]

Bodies take LOOPS loops each (1000, about 30 us): long compared with a probe, so that the shares
are known however expensive probes are on this machine. They run for so many seconds of CPU time, or until
the observer sends a line. The result has the number of rounds, their CPU time, and each function's share
of the loops.
"""

import json
import time

import proto

WARM = 0
PARTS = {"one": 1, "two": 2, "five": 5, "twelve": 12}

loops = 1000


def one():
    x = 0
    for i in range(loops):
        x = x * 31 + i & 0xffff
    return x


def two():
    x = 0
    for i in range(2 * loops):
        x = x * 31 + i & 0xffff
    return x


def five():
    x = 0
    for i in range(loops):
        x = x * 31 + i & 0xffff
    return x


def twelve():
    x = 0
    for i in range(4 * loops):
        x = x * 31 + i & 0xffff
    return x


def batch():
    """Calls five() five times and twelve() three times."""
    for _ in range(5):
        five()
    for _ in range(3):
        twelve()


def round_():
    one()
    two()
    batch()


def main(seconds="1", body="1000"):
    global loops
    loops = int(body)
    rounds, begin = 0, time.process_time()
    end = begin + float(seconds) if seconds != "told" else None
    while time.process_time() < end if end else rounds % 20 or not proto.told():
        round_()
        rounds += 1
    total = sum(PARTS.values())
    return json.dumps({"rounds": rounds, "cpu": time.process_time() - begin,
            "shares": {name: n / total for name, n in PARTS.items()}})
