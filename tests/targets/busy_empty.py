# SPDX-License-Identifier: BSD-2-Clause
"""One thread calls an empty function as fast as it can: run.py busy_empty [SECONDS|told [CALLS]]

For so many seconds and at least so many calls, rounded up to thousands, or until the observer sends a line.
The result has the number of calls and the time that they took.
"""

import time

import proto

WARM = 0


def empty():
    pass


def batch():
    for _ in range(1000):
        empty()


def main(seconds="2", least="0"):
    clock = time.perf_counter
    calls, least = 0, int(least)
    start = clock()
    end = start + float(seconds) if seconds != "told" else None
    while calls < least or clock() < end if end else not proto.told():
        batch()
        calls += 1000
    return '{"calls": %d, "batches": %d, "seconds": %.6f}' % (calls, calls // 1000, clock() - start)
