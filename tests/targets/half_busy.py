# SPDX-License-Identifier: BSD-2-Clause
"""One thread calls an empty function for half of the time, in periods of some milliseconds, and sleeps
for the other half: run.py half_busy [SECONDS]

A daemon that is not blocked can handle this rate on any machine, so no event may be lost.
"""

import time

WARM = 0


def empty():
    pass


def turn(clock):
    start = clock()
    while clock() < start + 0.004:
        for _ in range(1000):
            empty()
    time.sleep(clock() - start)


def main(seconds="2"):
    clock = time.perf_counter
    end = clock() + float(seconds)
    while clock() < end:
        turn(clock)
    return '{}'
