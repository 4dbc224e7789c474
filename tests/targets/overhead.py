# SPDX-License-Identifier: BSD-2-Clause
"""Many short calls, also measured by the target itself: run.py overhead [CALLS]

Each run of main() before `ready` prints the time of the calls: "untraced SECONDS".
"""

import time

import proto

WARM = 3
runs = []


def leaf(n):
    for _ in range(10):
        n += 1
    return n


def calls(n):
    for i in range(n):
        leaf(i)


def main(n="100000"):
    start = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
    calls(int(n))
    runs.append(time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - start)
    if len(runs) == WARM:
        proto.say("untraced %.6f" % min(runs))
