# SPDX-License-Identifier: BSD-2-Clause
"""The part of mixed.py about frames that are suspended: generators, coroutines, asyncio."""

import asyncio
import contextlib
import types


# Generators ---------------------------------------------------------------------------------

def count(n):
    for i in range(n):
        yield i


def echo():
    got = None
    while True:
        got = yield got


def catching():
    caught = 0
    while True:
        try:
            yield caught
        except ValueError:
            caught += 1
        except KeyError:
            return


def guarded(log):
    try:
        while True:
            yield len(log)
    finally:
        cleanup(log)


def cleanup(log):
    log.append("closed")


def delegating(n):
    got = yield from count(n)
    assert got is None
    back = yield from returning()
    yield back


def returning():
    yield "in"
    return "back"


def tree(n):
    if n:
        yield from tree(n - 1)
        yield n
        yield from tree(n - 1)


def failing():
    yield 1
    raise ValueError("from a generator")


def generators():
    assert list(count(4)) == [0, 1, 2, 3]
    gen = echo()
    assert next(gen) is None and gen.send(3) == 3 and gen.send("x") == "x"
    with contextlib.suppress(ValueError):
        gen.throw(ValueError("unhandled in the generator"))

    gen = catching()
    assert next(gen) == 0 and gen.throw(ValueError()) == 1 and next(gen) == 1
    with contextlib.suppress(StopIteration):
        gen.throw(KeyError())
    with contextlib.suppress(StopIteration):
        next(gen)  # exhausted: nothing runs

    gen = catching()
    with contextlib.suppress(ValueError):
        gen.throw(ValueError("not started"))

    log = []
    gen = guarded(log)
    assert next(gen) == 0
    gen.close()
    gen.close()
    gen = guarded(log)
    assert next(gen) == 1
    del gen  # abandoned
    gen = guarded(log)
    del gen  # never started
    assert log == ["closed", "closed"]

    assert list(delegating(2)) == [0, 1, "in", "back"]
    assert list(tree(3)) == [1, 2, 1, 3, 1, 2, 1]
    gen = delegating(3)
    next(gen)
    with contextlib.suppress(ValueError):
        gen.throw(ValueError("through yield from"))
    with contextlib.suppress(ValueError):
        list(failing())
    assert sum(x * x for x in range(5)) == 30
    assert sum(x + y for x in range(3) for y in count(x)) == 6
    a, b = (x for x in range(2))
    assert (a, b) == (0, 1)


# Coroutines ---------------------------------------------------------------------------------

class Yielding:
    def __init__(self, n):
        self.n = n

    def __await__(self):
        for i in range(self.n):
            yield i
        return self.n


async def inner(n):
    return await Yielding(n)


async def outer(n):
    return await inner(n) + await inner(n)


async def at_once():
    return 1


@types.coroutine
def old_style(n):
    yield n
    return n


async def awaiting_old(n):
    return await old_style(n) + await at_once()


async def guarded_coroutine(log):
    try:
        await Yielding(3)
    finally:
        cleanup(log)


async def numbers(n):
    for i in range(n):
        await Yielding(1)
        yield i


async def manager_user():
    async with Manager() as got:
        await Yielding(1)
        return got


class Manager:
    async def __aenter__(self):
        await Yielding(1)
        return "entered"

    async def __aexit__(self, *exc):
        await Yielding(1)


class Iterating:
    def __init__(self, n):
        self.n = n

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.n == 0:
            raise StopAsyncIteration
        self.n -= 1
        return self.n


async def consuming():
    got = [i async for i in numbers(3)]
    async for i in Iterating(3):
        got.append(i)
    got.extend([i async for i in numbers(3) if i])
    return got


def drive(coro):
    """Run a coroutine by hand; returns its value and how often it was suspended."""
    suspended = 0
    while True:
        try:
            coro.send(None)
        except StopIteration as end:
            return end.value, suspended
        suspended += 1


def coroutines():
    assert drive(outer(2)) == (4, 4)
    assert drive(at_once()) == (1, 0)
    assert drive(awaiting_old(5)) == (6, 1)
    assert drive(manager_user()) == ("entered", 3)
    assert drive(consuming()) == ([0, 1, 2, 2, 1, 0, 1, 2], 6)

    log = []
    coro = guarded_coroutine(log)
    coro.send(None)
    with contextlib.suppress(ValueError):
        coro.throw(ValueError("into a coroutine"))
    coro = guarded_coroutine(log)
    coro.send(None)
    coro.close()
    coro = guarded_coroutine(log)
    coro.close()  # never started
    assert len(log) == 2

    agen = numbers(3)
    with contextlib.suppress(StopIteration):
        drive_step = agen.asend(None)
        drive_step.send(None)
        drive_step.send(None)
    with contextlib.suppress(StopIteration, RuntimeError):
        agen.aclose().send(None)


# asyncio ------------------------------------------------------------------------------------

async def worker(queue, results):
    while True:
        item = await queue.get()
        if item is None:
            return
        await asyncio.sleep(0)
        results.append(item * item)


async def tick(n):
    total = 0
    for i in range(n):
        await asyncio.sleep(0)
        total += i
    return total


async def service():
    queue, results = asyncio.Queue(maxsize=2), []
    workers = [asyncio.ensure_future(worker(queue, results)) for _ in range(2)]
    for i in range(6):
        await queue.put(i)
    for _ in workers:
        await queue.put(None)
    await asyncio.gather(*workers)
    task = asyncio.ensure_future(tick(100))
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    totals = await asyncio.gather(tick(3), tick(4), at_once())
    return sorted(results), totals


def run_loop(coro):
    if hasattr(asyncio, "run"):
        return asyncio.run(coro)
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coro)
    finally:
        loop.close()


def event_loop():
    results, totals = run_loop(service())
    assert results == [0, 1, 4, 9, 16, 25] and totals == [3, 6, 1]
