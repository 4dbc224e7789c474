# SPDX-License-Identifier: BSD-2-Clause
"""Calls that take from 20 us to 500 us, which they measure themselves on both clocks, with and without callees.

Each measures its own time, which is less than the call's, and its caller that of the call, which is more: where the
machine interrupts it between the two, it is known by how much. CPU time is measured without and with what a
hypervisor steals, and may be either, as that is known only at the next context switch. main() returns the number of
durations of each function, bounds of their quantiles, and a lower one of their maximum, in nanoseconds.
"""

import json
import math
import os
import time

import taskclock

WARM = 1
CALLS = 1500
SHORT, LONG = 20000, 500000
PAUSE = 200e-6
TASK = taskclock.open_clock()


def plain(ns, _clock=time.perf_counter, _cpu=time.clock_gettime, _thread=time.CLOCK_THREAD_CPUTIME_ID,
          _read=os.read, _task=TASK):
    start = _clock()
    task = _read(_task, 8)
    used = _cpu(_thread)
    end = start + ns * 1e-9
    while _clock() < end:
        pass
    used = _cpu(_thread) - used
    task = [(task, _read(_task, 8))]
    return _clock() - start, used, task


def pausing(ns, _clock=time.perf_counter, _cpu=time.clock_gettime, _thread=time.CLOCK_THREAD_CPUTIME_ID,
            _read=os.read, _task=TASK):
    """Its wall time is longer than its CPU time."""
    start = _clock()
    task = _read(_task, 8)
    used = _cpu(_thread)
    end = start + ns * 1e-9
    while _clock() < end:
        pass
    time.sleep(PAUSE)
    used = _cpu(_thread) - used
    task = [(task, _read(_task, 8))]
    return _clock() - start, used, task


def empty():
    pass


def nesting(ns, _clock=time.perf_counter, _cpu=time.clock_gettime, _thread=time.CLOCK_THREAD_CPUTIME_ID,
            _read=os.read, _task=TASK):
    """The three calls inside take almost no time, except for a tracer's overhead."""
    for _ in range(3):
        empty()
    start = _clock()
    task = _read(_task, 8)
    used = _cpu(_thread)
    end = start + ns * 1e-9
    while _clock() < end:
        pass
    used = _cpu(_thread) - used
    task = [(task, _read(_task, 8))]
    return _clock() - start, used, task


def recursive(depth, took, ns, _clock=time.perf_counter, _cpu=time.clock_gettime,
              _thread=time.CLOCK_THREAD_CPUTIME_ID, _read=os.read, _task=TASK):
    """Each activation has its own duration, which includes those below it."""
    start = _clock()
    task = _read(_task, 8)
    used = _cpu(_thread)
    end = start + ns * 1e-9
    while _clock() < end:
        pass
    used = _cpu(_thread) - used
    task = [(task, _read(_task, 8))]
    seconds = _clock() - start
    if depth:
        below = call(took, recursive, depth - 1, took, ns)
        seconds, used, task = seconds + below[0], used + below[1], task + below[2]
    return seconds, used, task


def call(took, fn, *args, _clock=time.perf_counter, _cpu=time.clock_gettime,
         _thread=time.CLOCK_THREAD_CPUTIME_ID, _read=os.read, _task=TASK):
    """Calls fn, and adds to `took` what it says and what it is from outside."""
    start = _clock()
    task = _read(_task, 8)
    used = _cpu(_thread)
    inside = fn(*args)
    used = _cpu(_thread) - used
    task = [(task, _read(_task, 8))]
    took.append((inside, (_clock() - start, used, task)))
    return inside


def lengths():
    return [SHORT * (LONG / SHORT) ** (i / (CALLS - 1)) for i in range(CALLS)]


def main():
    took = {"plain": [], "pausing": [], "nesting": [], "recursive": []}
    for ns in lengths():
        call(took["plain"], plain, ns)
    for ns in lengths()[::5]:
        call(took["pausing"], pausing, ns)
    for ns in lengths()[::5]:
        call(took["nesting"], nesting, ns)
    for ns in lengths()[::20]:
        call(took["recursive"], recursive, 3, took["recursive"], ns)
    return json.dumps({name: {"wall": summary([(a[0], b[0]) for a, b in v]),
                              "cpu": summary([(min(a[1], with_stolen(a[2])), max(b[1], with_stolen(b[2])))
                                              for a, b in v])}
                       for name, v in took.items()})


def with_stolen(pairs):
    return sum(taskclock.seconds(*pair) for pair in pairs)


def summary(bounds):
    """Of seconds that are at least and at most these."""
    least, most = (sorted(v) for v in zip(*bounds))
    ret = {"n": len(least), "max": int(least[-1] * 1e9)}
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        rank = math.ceil(share * len(least)) - 1
        ret[name] = [int(least[rank] * 1e9), int(most[rank] * 1e9)]
    return ret
