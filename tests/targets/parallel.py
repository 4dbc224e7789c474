# SPDX-License-Identifier: BSD-2-Clause
"""Threads at full rate, at the same time where there is no GIL: run.py parallel [ROUNDS] [THREADS]

All threads begin at once, with functions that were not called before: several threads are the first to
execute each code object. Then they call the same functions as fast as they can, make and free code
objects, pass generators and coroutines on to each other, and start short-lived threads, whose
frames use memory of earlier ones. The result has the number of calls of each function: each thread
counts its own, in its own code.
"""

import _thread
import gc
import json
import time

WARM = 1
FRESH = 150  # functions that were not called before
STEPS = 40  # calls of each kind in a round
CHURN = 4  # code objects that are made, executed and freed in a round
RELAY = 6  # rounds after which generators are passed on: threads then wait for each other
COLLECT = 20  # rounds after which one thread collects garbage
BRIEF = 3  # short-lived threads that are started in a round that has any

total = {}
total_lock = _thread.allocate_lock()
generation = [0]


class Counts(dict):
    """Of one thread; get() and __setitem__ are not calls of Python functions."""

    def add_to_total(self):
        with total_lock:
            for name in self:
                total[name] = total.get(name, 0) + self[name]


def leaf(n):
    return n


def pair(n):
    return leaf(n)


def deep(n):
    return leaf(n) if n == 0 else deep(n - 1)


def gen(n):
    for i in range(n):
        yield leaf(i)


def fails(n):
    if n == 0:
        raise ValueError
    fails(n - 1)


async def waits(n):
    for i in range(n):
        await Once()
    return leaf(n)


class Once:
    def __await__(self):
        yield leaf(1)


class Thing:
    def __init__(self, n):
        self.n = leaf(n)

    @property
    def value(self):
        return leaf(self.n)


def steps():
    for i in range(STEPS):
        pair(i)
    deep(STEPS)
    for i in gen(STEPS):
        pass
    for i in range(4):
        Thing(i).value
    try:
        fails(5)
    except ValueError:
        pass
    coroutine = waits(3)
    for i in range(4):
        try:
            coroutine.send(None)
        except StopIteration:
            pass


# The calls made by one call of steps()
STEPS_COUNTS = {"steps": 1, "pair": STEPS, "deep": STEPS + 1, "gen": STEPS + 1, "__init__": 4,
                "value": 4, "fails": 6, "waits": 4, "__await__": 6,
                "leaf": STEPS + 1 + STEPS + 8 + 3 + 1}


def passed_on():
    """A generator that lives longer than the thread that ran it last."""
    while True:
        leaf(0)
        yield


def relay(mine, following, counts):
    """Run the generators that another thread has run before, and pass them on."""
    mine.acquire()
    for g in following[1]:
        next(g)
        counts["passed_on"] = counts.get("passed_on", 0) + 1
        counts["leaf"] = counts.get("leaf", 0) + 1
    following[0].release()


def brief(n, ended):
    deep(n)
    ended.release()


def start_brief(counts):
    ended = [held() for _ in range(BRIEF)]
    for i in range(BRIEF):
        _thread.start_new_thread(brief, (i + 20, ended[i]))
        counts["brief"] = counts.get("brief", 0) + 1
        counts["deep"] = counts.get("deep", 0) + i + 21
        counts["leaf"] = counts.get("leaf", 0) + 1
    for lock in ended:
        lock.acquire()


def held():
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


def churn(counts, i):
    space = {}
    source = "def churned(n): return [n for n in range(%d)]\nchurned(1)" % i
    exec(compile(source, "<churned>", "exec"), space)  # which frees what it makes, in 3.13t as well
    counts["churned"] = counts.get("churned", 0) + 1


def fresh_functions():
    """Functions with separate code objects, all with the same name."""
    generation[0] += 1
    made = []
    for i in range(FRESH):
        space = {}
        exec("def fresh():\n    return %d" % (generation[0] * FRESH + i), space)
        made.append(space["fresh"])
    return made


def together(state):
    """A spinning barrier: all threads that have a CPU leave it at the same moment."""
    with total_lock:
        state["here"] += 1
    while state["here"] < state["threads"]:
        time.sleep(0)


def worker(number, rounds, state):
    counts = Counts()
    together(state)
    for function in state["fresh"]:
        function()
    counts["fresh"] = FRESH
    for i in range(rounds):
        steps()
        for name in STEPS_COUNTS:
            counts[name] = counts.get(name, 0) + STEPS_COUNTS[name]
        for k in range(CHURN):
            churn(counts, k)
        counts["churn"] = counts.get("churn", 0) + CHURN
        if i % RELAY == 0:
            k = i // RELAY % 2
            relay(state["locks"][number][k], state["next"][number][k], counts)
            counts["relay"] = counts.get("relay", 0) + 1
        if i % COLLECT == number:
            start_brief(counts)
            counts["start_brief"] = counts.get("start_brief", 0) + 1
            gc.collect()
    counts["worker"] = 1
    counts.add_to_total()
    state["ended"][number].release()


def prepared(threads):
    """Two sets of generators circulate among the threads, each behind a lock per thread."""
    locks = [[held(), held()] for _ in range(threads)]
    sets = [[passed_on() for _ in range(5)] for _ in range(2)]
    following = [[(locks[(i + 1) % threads][k], sets[k]) for k in range(2)]
                 for i in range(threads)]
    state = {"here": 0, "threads": threads, "fresh": fresh_functions(), "locks": locks,
             "next": following, "ended": [held() for _ in range(threads)]}
    for k in range(2):
        locks[0][k].release()
    return state


def main(rounds="3", threads="4"):
    total.clear()
    state = prepared(int(threads))
    for i in range(int(threads)):
        _thread.start_new_thread(worker, (i, int(rounds), state))
    for lock in state["ended"]:
        lock.acquire()
    return json.dumps(total)
