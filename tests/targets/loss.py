# SPDX-License-Identifier: BSD-2-Clause
"""Many cheap calls of few functions, in two threads: run.py loss [told]

The callers of each function are fixed, so every context of a profile can be checked after events were
lost; the result has the number of calls of each function. Each thread counts its own. They work until the
observer sends a line; otherwise for a moment.
"""

import proto

WARM = 1
stop = []


def leaf(n):
    return n


def numbers(n):
    for i in range(n):
        yield i


def fails(n):
    leaf(n)
    raise ValueError(n)


def recurse(n):
    return leaf(n) if n == 0 else recurse(n - 1)


def middle():
    for n in numbers(3):
        leaf(n)
    try:
        fails(1)
    except ValueError:
        pass
    recurse(4)


def outer():
    rounds = 0
    while not stop:
        middle()
        rounds += 1
    return rounds


def wait(how):
    if how == "told":
        proto.wait()
    stop.append(True)


def main(how="at once"):
    rounds = []
    del stop[:]
    proto.run_threads([lambda: wait(how)] + [lambda: rounds.append(outer()) for _ in range(2)])
    rounds = sum(rounds)
    return '{"middle": %d, "leaf": %d, "numbers": %d, "fails": %d, "recurse": %d}' % (
        rounds, 5 * rounds, 4 * rounds, rounds, 5 * rounds)
