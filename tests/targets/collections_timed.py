# SPDX-License-Identifier: BSD-2-Clause
"""Collections of the garbage collector, counted and timed by gc.callbacks: run.py collections_timed

The result has by generation: their number according to gc.callbacks and to the interpreter's own
statistics, the CPU seconds from the end of "start" to the beginning of "stop", and the longest of
them (CPU time, because on a busy machine the end of one may be late).
With "silent" there are no callbacks: only the interpreter's own numbers are known.
"""

import gc
import json
import time

WARM = 0
ROUNDS = 10
KEPT = 100000
GARBAGE = 2500

found = {"n": [0, 0, 0], "seconds": [0.0, 0.0, 0.0], "longest": [0.0, 0.0, 0.0]}
since = [0.0]


class Node:
    def __init__(self, other):
        self.other = other


class Ending:
    """Its finalizer runs inside of a collection."""

    def __init__(self):
        self.me = self

    def __del__(self):
        finalized()


def finalized():
    pass


def thread_time():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)  # time.thread_time is 3.7+


def on_collection(phase, info, clock=thread_time):
    if phase == "stop":
        seconds = clock() - since[0]
        generation = info["generation"]
        found["n"][generation] += 1
        found["seconds"][generation] += seconds
        found["longest"][generation] = max(found["longest"][generation], seconds)
    else:
        since[0] = clock()


def litter():
    """Young garbage: triggers collections wherever the interpreter runs them."""
    kept = []
    for _ in range(GARBAGE):
        node = Node(None)
        node.other = node
        kept.append([node])
    return kept


def end_some():
    for _ in range(5):
        Ending()


def collect(generation):
    gc.collect(generation)


def rounds(old):
    for _ in range(ROUNDS):
        litter()
        end_some()
        for generation in (0, 1, 2):
            collect(generation)
    return len(old)


def main(how="called"):
    old = [Node([i]) for i in range(KEPT)]
    if how != "silent":
        gc.callbacks.append(on_collection)
    before = gc.get_stats()
    gc.enable()
    rounds(old)
    gc.disable()
    found["stats"] = [b["collections"] - a["collections"]
                      for a, b in zip(before, gc.get_stats())]
    if how != "silent":
        gc.callbacks.remove(on_collection)
    return json.dumps(found)
