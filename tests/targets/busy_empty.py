# SPDX-License-Identifier: BSD-2-Clause
"""One thread calls an empty function as fast as it can: run.py busy_empty [SECONDS [CALLS]]

For this time, and for at least so many calls, in thousands. The result has the number of calls and the time that they took.
"""

import time

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
    end = start + float(seconds)
    while calls < least or clock() < end:
        batch()
        calls += 1000
    return '{"calls": %d, "batches": %d, "seconds": %.6f}' % (calls, calls // 1000, clock() - start)
