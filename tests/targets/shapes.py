# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of every shape whose calls cProfile counts correctly: run.py shapes KIND

    deep        10,000 frames, directly, mutually, through C code, through generators
    exceptions  raised through dozens of frames of all sorts, caught, raised again, thrown in
    asyncgen    asynchronous generators: driven, left early, thrown into, closed
    cancel      asyncio: tasks cancelled at every depth, timeouts (on a simulated clock)
    callbacks   called from C code: sort keys, qsort, re.sub, map, signal handlers, destructors
    codes       thousands of functions made by exec; freed, their addresses used again
    names       names of 10,000 characters, of every width

Those that cProfile cannot follow are in shapes_known.py.
"""

import _thread
import asyncio
import contextlib
import ctypes
import functools
import os
import re
import selectors
import signal
import sys
import weakref

import proto

WARM = 1
DEPTH = 10000


# deep ---------------------------------------------------------------------------------------

def down(n):
    return 0 if n == 0 else 1 + down(n - 1)


def ping(n):
    return 0 if n == 0 else 1 + pong(n - 1)


def pong(n):
    return 0 if n == 0 else 1 + ping(n - 1)


def through_c(n):
    return 0 if n == 0 else 1 + next(map(through_c, (n - 1,)))


def delegate(n):
    if n:
        yield from delegate(n - 1)
    yield n


async def awaits(n):
    return 0 if n == 0 else 1 + await awaits(n - 1)


def raises_at(n):
    if n == 0:
        raise KeyError(n)
    raises_at(n - 1)


def all_deep():
    assert down(DEPTH) == DEPTH
    assert ping(DEPTH) == DEPTH
    assert through_c(150) == 150  # 3.12 allows a few hundred C frames
    assert sum(delegate(200)) == 200 * 201 // 2
    with contextlib.suppress(StopIteration):
        awaits(1000).send(None)
    with contextlib.suppress(KeyError):
        raises_at(DEPTH)


def deep():
    """In a thread with a large enough stack: up to 3.10 each frame takes some C stack."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(2 * DEPTH + 1000)
    _thread.stack_size(512 << 20)
    try:
        proto.run_threads([all_deep])
    finally:
        _thread.stack_size(0)
        sys.setrecursionlimit(limit)


# exceptions ---------------------------------------------------------------------------------

class Trouble(Exception):
    pass


class Guard:
    def __init__(self, swallow=False):
        self.swallow = swallow

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        return self.swallow


def plain(n):
    if n == 0:
        raise Trouble()
    return plain(n - 1)


def finally_(n):
    try:
        return plain(0) if n == 0 else finally_(n - 1)
    finally:
        note(n)


def again(n):
    try:
        plain(n)
    except Trouble as e:
        note(n)
        if n > 1:
            again(n - 1)
        raise KeyError(n) from e


def guarded(n):
    with Guard():
        return plain(3) if n == 0 else guarded(n - 1)


def in_generator(n):
    if n == 0:
        yield plain(2)
    else:
        yield from in_generator(n - 1)


def in_key(n):
    return plain(1) if n == 0 else sorted([n - 1], key=in_key)


def in_expression(n):
    return [x for x in (plain(x) for x in range(n))]


def passes_on():
    try:
        while True:
            try:
                yield 1
            except KeyError:
                note(1)
    except Trouble:
        note(2)
        raise


def chain_of(n):
    if n == 0:
        yield from passes_on()
    else:
        yield from chain_of(n - 1)


def note(n):
    return n


def exceptions():
    for n in (0, 1, 40):
        for fn in (plain, finally_, again, guarded, in_key):
            with contextlib.suppress(Trouble, KeyError):
                fn(n)
        with contextlib.suppress(Trouble):
            next(in_generator(n))
        with contextlib.suppress(Trouble):
            in_expression(n + 1)
        gen = chain_of(n)
        next(gen)
        gen.throw(KeyError())
        with contextlib.suppress(Trouble):
            gen.throw(Trouble())
    with Guard(swallow=True):
        plain(60)
    # An exception that propagates while others are raised and caught.
    try:
        plain(10)
    except Trouble:
        with contextlib.suppress(Trouble):
            plain(20)
        for _ in range(3):
            with contextlib.suppress(Trouble):
                next(in_generator(5))


# asyncgen -----------------------------------------------------------------------------------

class Pause:
    def __init__(self, n):
        self.n = n

    def __await__(self):
        for i in range(self.n):
            yield i


def drive(coro):
    steps = 0
    try:
        while True:
            coro.send(None)
            steps += 1
    except StopIteration as end:
        return end.value, steps


async def numbers(n):
    try:
        for i in range(n):
            await Pause(1)
            yield i
    finally:
        await Pause(2)
        note(n)


async def squares(n):
    gen = numbers(n)
    try:
        async for i in gen:
            yield i * i
    finally:
        await gen.aclose()


async def echo():
    got = None
    while True:
        try:
            got = yield got
        except Trouble:
            got = "thrown"


async def takes_all(n):
    return [x async for x in squares(n)]


async def leaves_early(n):
    gen = squares(n)
    async for x in gen:
        if x > 3:
            break
    await gen.aclose()


async def talks():
    gen = echo()
    await gen.asend(None)
    assert await gen.asend(1) == 1
    assert await gen.athrow(Trouble()) == "thrown"
    await gen.aclose()
    with contextlib.suppress(StopAsyncIteration):
        await gen.asend(2)


async def nested(n):
    return [y async for x in squares(n) async for y in squares(x)]


async def talks_in_turn(n):
    one, other = numbers(n), numbers(n)
    for _ in range(n):
        assert await one.asend(None) == await other.asend(None)
    await other.aclose()
    await one.aclose()


def asyncgen():
    assert drive(takes_all(5)) == ([0, 1, 4, 9, 16], 7)
    drive(leaves_early(10))
    drive(talks())
    drive(nested(3))
    drive(talks_in_turn(4))
    # Driven by hand, thrown into in the middle.
    gen = numbers(3)
    assert drive(gen.asend(None))[0] == 0
    step = gen.asend(None)
    step.send(None)
    with contextlib.suppress(Trouble):
        step.throw(Trouble())
        drive(step)
    with contextlib.suppress(StopAsyncIteration):
        drive(gen.aclose())


# cancel -------------------------------------------------------------------------------------

class OwnTime(selectors.SelectSelector):
    """Waiting takes no time: the loop's clock jumps to the end of the wait."""

    now = 0.0

    def select(self, timeout=None):
        self.now += timeout or 0
        return super().select(0)


async def forever(n, log):
    try:
        if n == 0:
            await asyncio.get_event_loop().create_future()
        else:
            await forever(n - 1, log)
    finally:
        note(n)
        log.append(n)


async def stubborn(log):
    for _ in range(3):
        with contextlib.suppress(asyncio.CancelledError):
            await forever(2, log)
    return len(log)


async def cleans_up(log):
    try:
        await forever(1, log)
    finally:
        await asyncio.sleep(1)
        note(1)


async def steps_of(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def consumes(log):
    async for i in steps_of(1000):
        log.append(i)


async def cancelled(task):
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert task.done()


async def after(task, pauses):
    for _ in range(pauses):
        await asyncio.sleep(0)
    await cancelled(task)


async def with_timeout(coro, seconds):
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(coro, seconds)


async def all_cancelled():
    log = []
    for depth in (0, 1, 5, 50):
        await after(asyncio.ensure_future(forever(depth, log)), 1)
    await after(asyncio.ensure_future(forever(3, log)), 0)  # never started
    await after(asyncio.ensure_future(cleans_up(log)), 1)
    await after(asyncio.ensure_future(consumes(log)), 7)
    task = asyncio.ensure_future(stubborn([]))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    assert await task == 9
    await with_timeout(forever(4, log), 0.5)
    await with_timeout(asyncio.sleep(1), 5)
    await with_timeout(with_timeout(forever(4, log), 2), 1)
    inner = asyncio.ensure_future(forever(2, log))
    await after(asyncio.ensure_future(with_timeout(asyncio.shield(inner), 10)), 2)
    await cancelled(inner)
    both = asyncio.gather(*[asyncio.ensure_future(forever(n, log)) for n in (1, 2)])
    await asyncio.sleep(0)
    await cancelled(both)
    if hasattr(asyncio, "timeout"):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(3):
                await forever(2, log)


def cancel():
    selector = OwnTime()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(all_cancelled())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


# callbacks ----------------------------------------------------------------------------------

def negated(x):
    return -x


def odd(x):
    return x % 2


def add(a, b):
    return a + b


def compare(a, b):
    return (a > b) - (a < b)


def upper(match):
    return negated(0) or match.group().upper()


def sorts(x):
    """A key function that itself sorts with a key function."""
    return x if x < 1 else sorted(range(x), key=sorts)[-1] + x


def compare_ints(a, b):
    return compare(a[0], b[0])


def c_sort(values):
    """qsort of the C library, with a comparison function in Python."""
    ints = ctypes.c_int * len(values)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int),
                            ctypes.POINTER(ctypes.c_int))
    array = ints(*values)
    ctypes.CDLL(None).qsort(array, len(values), ctypes.sizeof(ctypes.c_int), kind(compare_ints))
    return list(array)


class Dies:
    def __init__(self, log):
        self.log = log

    def __del__(self):
        note(1)
        self.log.append(1)


def gone(_):
    note(2)


def on_signal(*_):
    note(3)


def signalled(n):
    for _ in range(n):
        os.kill(os.getpid(), signal.SIGUSR1)
        note(4)


def callbacks():
    values = [(i * 7919) % 101 for i in range(101)]
    assert sorted(values, key=negated)[0] == 100
    assert sorted(values, key=functools.cmp_to_key(compare)) == sorted(values)
    assert c_sort(values) == sorted(values)
    assert re.sub("[a-c]", upper, "abcdef" * 20)[:6] == "ABCdef"
    assert sum(map(negated, filter(odd, range(100)))) == -2500
    assert functools.reduce(add, map(add, range(50), range(50))) == 2450
    assert max(range(7), key=sorts) == 6
    assert list(iter(functools.partial(negated, 1), -1)) == []
    assert {}.setdefault(negated(1), None) is None
    log = []
    for _ in range(20):
        dies = Dies(log)
        ref = weakref.ref(dies, gone)
        del dies
        assert ref() is None
    assert len(log) == 20
    before = signal.signal(signal.SIGUSR1, on_signal)
    signalled(5)
    signal.signal(signal.SIGUSR1, before)


# codes --------------------------------------------------------------------------------------

MADE = 4000


def made(i, addresses):
    """A function that exists for this call only."""
    space = {}
    exec("def made_%d(n):\n    return n and made_%d(n - 1)\n" % (i, i), space)  # noqa: S102
    function = space.pop("made_%d" % i)
    space[function.__name__] = function
    addresses.add(id(function.__code__))
    function(i % 3)
    space.clear()


def codes():
    addresses = set()
    for i in range(MADE):
        made(i, addresses)
    # cProfile keeps code objects alive; without it they are freed.
    assert proto._profile or len(addresses) < MADE // 4, len(addresses)
    for i in range(100):
        assert eval("(lambda x: x + %d)(1)" % i) == i + 1


# names --------------------------------------------------------------------------------------

LONG = 10000
LETTERS = ("a", "\u00e9", "\u044f", "\u540d", "\U00010380")


def calls_itself(name, filename, times):
    space = {}
    source = "def %s(n):\n    return n and %s(n - 1)\n" % (name, name)
    exec(compile(source, filename, "exec"), space)  # noqa: S102
    space[name](times)


def names():
    for i, letter in enumerate(LETTERS):
        calls_itself(letter, "<%s>" % letter, i + 1)
        for n in (10, 100, 1000, LONG):
            calls_itself(letter * n, "<%s>" % (letter * 10), i + 2)
        # They differ in the last character only.
        calls_itself(letter * LONG + "x", "<long>", i + 3)
        calls_itself(letter * LONG + "y", "<long>", i + 4)
        calls_itself("short", "<%s>" % (letter * LONG), i + 5)


def main(kind):
    globals()[kind]()
