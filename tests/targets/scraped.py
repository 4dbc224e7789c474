# SPDX-License-Identifier: BSD-2-Clause
"""(No run.py.) Steady work until standard input ends: hot() takes twice the CPU time of warm(), steady() sleeps."""

import os
import select
import time

WARM, SLEEP = 0.002, 0.05


def warm(_clock=time.process_time):
    end = _clock() + WARM
    while _clock() < end:
        pass


def hot(_clock=time.process_time):
    end = _clock() + 2 * WARM
    while _clock() < end:
        pass


def steady():
    time.sleep(SLEEP)


def main():
    os.write(1, b"ready\n")
    while not select.select([0], [], [], 0)[0] or os.read(0, 4096):
        hot()
        warm()
        steady()


main()
