# SPDX-License-Identifier: BSD-2-Clause
"""Programs for continuous mode: continuous.py busy|fork|half|seldom|idle TAG

busy: one thread computes. fork: a child computes, the parent waits. half: computes for half of the time. seldom: for
a few percent of the time. idle: only waits. TAG is for the daemon's --match. Each prints "ready" before.
"""

import os
import sys
import time


def inner(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def outer():
    return inner(20000)


def busy():
    while True:
        outer()


def half():
    while True:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            outer()
        time.sleep(0.02)


def seldom():
    while True:
        outer()
        time.sleep(0.02)


def fork():
    parent = os.getpid()
    if not os.fork():
        while os.getppid() == parent:
            outer()
        return
    os.wait()


def idle():
    while True:
        time.sleep(60)


if __name__ == "__main__":
    os.write(1, b"ready\n")
    {"busy": busy, "half": half, "seldom": seldom, "fork": fork, "idle": idle}[sys.argv[1]]()
