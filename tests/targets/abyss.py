# SPDX-License-Identifier: BSD-2-Clause
"""A recursion of a given depth that works at its deepest point: run.py abyss [DEPTH [LEAVES]]

For 3.11 and later, where a call between Python functions takes no C stack. Each of LEAVES rounds at the
bottom is a call and its return, and an object with an __init__ (which has two returns in 3.13).
"""

import _thread
import sys

WARM = 0


class Thing:
    def __init__(self):
        self.made = True


def leaf():
    return Thing()


def down(n, leaves):
    if n:
        return down(n - 1, leaves) + 1
    for _ in range(leaves):
        leaf()
    return 0


def main(depth="100000", leaves="1000000"):
    reached = []
    lock = _thread.allocate_lock()

    def body():
        reached.append(down(int(depth) - 1, int(leaves)))
        lock.release()

    lock.acquire()
    sys.setrecursionlimit(int(depth) + 1000)
    _thread.stack_size(64 << 20)
    _thread.start_new_thread(body, ())
    lock.acquire()
    return '{"depth": %d}' % (reached[0] + 1)
