# SPDX-License-Identifier: BSD-2-Clause
"""Coroutines and generators of known number and lifetime: run.py coroutines

The result is a dictionary by function: [instances, open, steps, shortest suspension of each in ms].
Each function's instances run in pieces; `open` of them are still suspended at the end.
"""

import _thread
import asyncio
import json

WARM = 1
NAP = 0.03
kept = []


def counts_to(n):
    for i in range(n):
        yield i


def delegates(n):
    yield from counts_to_inner(n)


def counts_to_inner(n):
    for i in range(n):
        yield i


def dropped():
    yield 1
    yield 2


def kept_open():
    while True:
        yield


def handed_over():
    yield 1
    yield 2
    yield 3


async def at_once():
    return 1


async def inner_nap():
    await asyncio.sleep(NAP)


async def naps(n):
    for _ in range(n):
        await inner_nap()


async def numbers(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def takes(n):
    return [i async for i in numbers(n)]


async def cancelled():
    await asyncio.sleep(3600)


async def service():
    await asyncio.gather(*[asyncio.ensure_future(naps(2)) for _ in range(5)])
    for _ in range(6):
        await at_once()
    for _ in range(3):
        await takes(4)
    tasks = [asyncio.ensure_future(cancelled()) for _ in range(4)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def next_in_thread(gen):
    done = _thread.allocate_lock()
    done.acquire()

    def body():
        next(gen, None)
        done.release()
    _thread.start_new_thread(body, ())
    done.acquire()


def main():
    for _ in range(20):
        list(counts_to(4))
    for _ in range(7):
        list(delegates(3))
    for _ in range(10):
        next(dropped())
    gens = [kept_open() for _ in range(5)]
    for gen in gens:
        next(gen)
        next(gen)
    kept.append(gens)
    gen = handed_over()
    for _ in range(4):
        next_in_thread(gen)
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(service())
    finally:
        loop.close()
    nap = int(NAP * 1000)
    return json.dumps({
        "counts_to": [20, 0, 100, 0],
        "delegates": [7, 0, 28, 0],
        "counts_to_inner": [7, 0, 28, 0],
        "kept_open": [5, 5, 10, 0],
        "handed_over": [1, 0, 4, 0],
        "at_once": [6, 0, 6, 0],
        "naps": [5, 0, 15, 2 * nap],
        "inner_nap": [10, 0, 20, nap],
        "numbers": [3, 0, 27, 0],
        "takes": [3, 0, 15, 0],
        "cancelled": [4, 0, 8, 0],
        "service": [1, 0, None, 2 * nap],
        "dropped": [10, None, None, 0],
    })
