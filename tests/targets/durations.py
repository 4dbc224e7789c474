# SPDX-License-Identifier: BSD-2-Clause
"""Calls that take from 20 us to 500 us, which they measure themselves, with and without callees.

main() returns the number of durations of each function, and bounds of their quantiles, in nanoseconds.
"""

import json
import math
import time

WARM = 1
CALLS = 1500
SHORT, LONG = 20000, 500000
SLACK = 3  # calls that may be interrupted so that only one of the two clocks includes it


def plain(ns, _clock=time.perf_counter):
    start = _clock()
    end = start + ns * 1e-9
    while _clock() < end:
        pass
    return _clock() - start


def empty():
    pass


def nesting(ns, _clock=time.perf_counter):
    """The three calls inside take almost no time, except for a tracer's overhead."""
    for _ in range(3):
        empty()
    start = _clock()
    end = start + ns * 1e-9
    while _clock() < end:
        pass
    return _clock() - start


def recursive(depth, took, ns, _clock=time.perf_counter):
    """Each activation has its own duration, which includes those below it."""
    start = _clock()
    end = start + ns * 1e-9
    while _clock() < end:
        pass
    seconds = _clock() - start
    if depth:
        seconds += recursive(depth - 1, took, ns)
    took.append(seconds)
    return seconds


def lengths():
    return [SHORT * (LONG / SHORT) ** (i / (CALLS - 1)) for i in range(CALLS)]


def main():
    took = {"plain": [], "nesting": [], "recursive": []}
    for ns in lengths():
        took["plain"].append(plain(ns))
    for ns in lengths()[::5]:
        took["nesting"].append(nesting(ns))
    for ns in lengths()[::20]:
        recursive(3, took["recursive"], ns)
    return json.dumps({name: summary(v) for name, v in took.items()})


def summary(seconds):
    v = sorted(seconds)
    ret = {"n": len(v), "max": int(v[-1] * 1e9)}
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        rank = math.ceil(share * len(v)) - 1
        ret[name] = [int(v[max(0, min(len(v) - 1, rank + d))] * 1e9) for d in (-SLACK, SLACK)]
    return ret
