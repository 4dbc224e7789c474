# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of every shape that cProfile cannot follow: run.py shapes_known KIND

    recursion_error  the limit, reached again and again from different depths
    gen_threads      generators and coroutines suspended in one thread and resumed in others
    pthread_exit     threads that die in the middle of their frames
    foreign          threads that were not started by Python call Python functions
    tid_reuse        a thread with the tid of a thread that has died in the middle of its frames
    subinterpreters  other interpreters in the same thread, and in their own threads
    collected        the collector calls back wherever objects are made, also while frames begin
    waiting          an event loop with nothing to do for NAPS * NAP seconds

The result has the number of calls of each function, counted in its own code; and for some,
"CALLER -> NAME", the number of calls by that caller.
"""

import _thread
import asyncio
import contextlib
import ctypes
import gc
import json
import os
import sys
import weakref

WARM = 1

counts = {}


def counted(fn):
    """Count without a call of a Python function, in the function's own code."""
    counts[fn.__name__] = 0
    return fn


@counted
def leaf(n):
    counts["leaf"] += 1
    return n


# recursion_error -----------------------------------------------------------------------------

@counted
def bottomless(n):
    counts["bottomless"] += 1
    return bottomless(n + 1)


@counted
def bottomless_key(n):
    counts["bottomless_key"] += 1
    return sorted((n,), key=bottomless_key)


@counted
def bottomless_gen(n):
    counts["bottomless_gen"] += 1
    yield from bottomless_gen(n + 1)


@counted
def from_depth(n, what):
    counts["from_depth"] += 1
    if n:
        from_depth(n - 1, what)
    with contextlib.suppress(RecursionError):
        what()
    leaf(n)


def recursion_error():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    try:
        for depth in (0, 5, 50):
            from_depth(depth, lambda: bottomless(0))
            from_depth(depth, lambda: bottomless_key(0))
            from_depth(depth, lambda: next(bottomless_gen(0)))
    finally:
        sys.setrecursionlimit(limit)


# gen_threads ---------------------------------------------------------------------------------

THREADS = 5
GENERATORS = 12
TURNS = 40
kept = []  # closing a suspended generator may run it


@counted
def inner(n):
    while True:
        counts["inner"] += 1
        leaf(n)
        try:
            yield n
        except ValueError:
            leaf(n)


@counted
def outer(n):
    counts["outer"] += 1
    gen = inner(n)
    while True:
        try:
            yield next(gen)
        except ValueError:
            leaf(n)
        counts["outer"] += 1


class Once:
    def __await__(self):
        yield


@counted
async def coroutine(n):
    counts["coroutine"] += 1
    while True:
        await Once()
        counts["coroutine"] += 1
        leaf(n)


@counted
def turn(gens, i):
    counts["turn"] += 1
    for k, gen in enumerate(gens):
        if hasattr(gen, "__next__") and (i + k) % 7 == 3:
            gen.throw(ValueError())
        else:
            gen.send(None)


@counted
def player(gens, mine, following, ended):
    counts["player"] += 1
    for i in range(TURNS):
        mine.acquire()
        turn(gens, i)
        following.release()
    ended.release()


def gen_threads():
    gens = [outer(i) if i % 3 else coroutine(i) for i in range(GENERATORS)]
    kept.append(gens)
    for gen in gens:
        gen.send(None)
    locks = [held() for _ in range(THREADS)]
    ended = [held() for _ in range(THREADS)]
    for i in range(THREADS):
        _thread.start_new_thread(player, (gens, locks[i], locks[(i + 1) % THREADS], ended[i]))
    locks[0].release()
    for lock in ended:
        lock.acquire()
    # One is left suspended by a thread that has ended.
    turn(gens[1:], 0)


def held():
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


# pthread_exit, foreign ------------------------------------------------------------------------

libc = ctypes.CDLL(None)


@counted
def dies_at(n, tid):
    counts["dies_at"] += 1
    leaf(n)
    if n == 0:
        tid.append(libc.syscall(186))  # gettid
        libc.pthread_exit(None)
    dies_at(n - 1, tid)


@counted
def dies_in_generator(n, tid):
    counts["dies_in_generator"] += 1
    yield leaf(n)
    counts["dies_in_generator"] += 1
    dies_at(n, tid)


@counted
def starts_generator(n, tid):
    counts["starts_generator"] += 1
    list(dies_in_generator(n, tid))


def alive(tid):
    return not tid or os.path.exists("/proc/self/task/%d" % tid[0])


def wait_for_death(tid):
    """Does not count: two threads that increment the same number would lose some increments."""
    while alive(tid):
        os.sched_yield()


def pthread_exit():
    for n in (0, 1, 30):
        for fn in (dies_at, starts_generator):
            tid = []
            _thread.start_new_thread(fn, (n, tid))
            wait_for_death(tid)


@counted
def called(arg):
    counts["called"] += 1
    return leaf(arg or 0)


def foreign():
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    callback = kind(called)
    for i in range(20):
        thread = ctypes.c_ulong()
        libc.pthread_create(ctypes.byref(thread), None, callback, ctypes.c_void_p(i))
        libc.pthread_join(thread, None)


# tid_reuse -----------------------------------------------------------------------------------

@counted
def reports(n, tid, ended):
    counts["reports"] += 1
    tid.append(libc.syscall(186))
    leaf(n)
    ended.release()


def set_last_pid(pid):
    with open("/proc/sys/kernel/ns_last_pid", "w") as f:
        f.write(str(pid))


def reuse(tid):
    """Start threads until one has this tid. Other processes may get it first, but not always."""
    while True:
        got, ended = [], held()
        set_last_pid(tid - 1)
        _thread.start_new_thread(reports, (3, got, ended))
        ended.acquire()
        wait_for_death(got)
        if got[0] == tid:
            return


def tid_reuse():
    for n in (0, 3, 7):
        tid = []
        _thread.start_new_thread(dies_at, (n, tid))
        wait_for_death(tid)
        reuse(tid[0])


# subinterpreters -----------------------------------------------------------------------------

SCRIPT = """
def sub_leaf(n):
    return n

def sub_deep(n):
    return sub_leaf(n) if n == 0 else sub_deep(n - 1)

def sub_gen(n):
    for i in range(n):
        yield sub_leaf(i)

def sub_fails(n):
    if n == 0:
        raise ValueError()
    sub_fails(n - 1)

sub_deep(20)
list(sub_gen(5))
try:
    sub_fails(10)
except ValueError:
    pass
sorted(range(10), key=sub_leaf)
"""
SUB_COUNTS = {"sub_leaf": 16, "sub_deep": 21, "sub_gen": 6, "sub_fails": 11}


def interpreters():
    for name in ("_interpreters", "_xxsubinterpreters"):
        with contextlib.suppress(ImportError):
            return __import__(name)
    return None


@counted
def runs(module, n):
    counts["runs"] += 1
    leaf(n)
    if n:
        return runs(module, n - 1)
    interpreter = module.create()
    for _ in range(3):
        module.run_string(interpreter, SCRIPT)
        leaf(0)
        for name in SUB_COUNTS:
            counts[name] += SUB_COUNTS[name]
    module.destroy(interpreter)


@counted
def runs_in_thread(module, n, ended):
    counts["runs_in_thread"] += 1
    runs(module, n)
    ended.release()


def subinterpreters():
    module = interpreters()
    for name in SUB_COUNTS:
        counts[name] = 0
    for n in (0, 6):
        runs(module, n)
    ended = held()
    _thread.start_new_thread(runs_in_thread, (module, 4, ended))
    ended.acquire()


# collected -----------------------------------------------------------------------------------

MADE = 200


def count_below(name):
    """Which function has called the caller of this one?"""
    key = sys._getframe(2).f_code.co_name + " -> " + name
    counts[key] = counts.get(key, 0) + 1


@counted
def on_collect(phase, info):
    counts["on_collect"] += 1
    count_below("on_collect")
    leaf(0)


@counted
def on_death(ref):
    counts["on_death"] += 1
    count_below("on_death")
    leaf(0)


@counted
def never_runs(_=None):
    yield leaf(0)


@counted
async def never_awaited():
    return leaf(0)


@counted
def has_cells(a, b):
    counts["has_cells"] += 1
    return (lambda: a + b) and leaf(a)


class Cycle:
    pass


def make_garbage(refs):
    cycle = Cycle()
    cycle.cycle = cycle
    refs.append(weakref.ref(cycle, on_death))


@counted
def makes_generators(refs):
    counts["makes_generators"] += 1
    for _ in range(MADE):
        kept.append(never_runs())
        kept.append(never_awaited())
        make_garbage(refs)
    kept.extend(map(never_runs, range(MADE)))


@counted
def makes_cells(refs):
    counts["makes_cells"] += 1
    for i in range(MADE):
        has_cells(i, i)
        make_garbage(refs)


def collected():
    threshold = gc.get_threshold()
    refs = []
    gc.callbacks.append(on_collect)
    gc.set_threshold(1)
    gc.enable()
    try:
        makes_generators(refs)
        makes_cells(refs)
    finally:
        gc.disable()
        gc.set_threshold(*threshold)
        gc.callbacks.remove(on_collect)


# waiting -------------------------------------------------------------------------------------

NAPS = 8
NAP = 0.05


@counted
async def naps(n):
    counts["naps"] += 1
    for _ in range(n):
        await asyncio.sleep(NAP)
        counts["naps"] += 1


def waiting():
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(naps(NAPS))
    finally:
        loop.close()


def main(kind):
    for name in list(counts):
        counts[name] = 0
    globals()[kind]()
    return json.dumps({name: n for name, n in counts.items() if n})
