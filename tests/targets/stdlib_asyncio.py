# SPDX-License-Identifier: BSD-2-Clause
"""asyncio: the event loop and its primitives. Nothing here waits for the clock or for a socket, so
that the number of loop iterations does not depend on timing. gather() gets tasks, not coroutines: up
to 3.6 it starts coroutines in the order of a set of addresses."""

import asyncio


async def producer(queue, n):
    for i in range(n):
        await queue.put(i)
    await queue.put(None)


async def consumer(queue):
    total = 0
    while True:
        item = await queue.get()
        if item is None:
            return total
        total += item


async def limited(semaphore, lock, counter):
    async with semaphore:
        await asyncio.sleep(0)
        async with lock:
            counter[0] += 1


async def waiter(event):
    await event.wait()
    return 1


async def numbers(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def failing():
    await asyncio.sleep(0)
    raise ValueError("failed")


async def chain(n):
    if n == 0:
        await asyncio.sleep(0)
        return 0
    return 1 + await chain(n - 1)


def started(coroutines):
    return [asyncio.ensure_future(c) for c in coroutines]


async def service():
    queue = asyncio.Queue(maxsize=5)
    _, total = await asyncio.gather(*started([producer(queue, 300), consumer(queue)]))
    assert total == 44850
    semaphore, lock, counter = asyncio.Semaphore(3), asyncio.Lock(), [0]
    await asyncio.gather(*started(limited(semaphore, lock, counter) for _ in range(60)))
    assert counter[0] == 60
    event = asyncio.Event()
    tasks = [asyncio.ensure_future(waiter(event)) for _ in range(40)]
    await asyncio.sleep(0)
    event.set()
    done, pending = await asyncio.wait(tasks)
    assert len(done) == 40 and not pending
    assert sum([i async for i in numbers(100)]) == 4950
    results = await asyncio.gather(*started(failing() for _ in range(20)),
                                   return_exceptions=True)
    assert all(isinstance(r, ValueError) for r in results)
    assert await asyncio.wait_for(chain(20), timeout=3600) == 20
    assert await asyncio.shield(chain(5)) == 5
    future = asyncio.get_event_loop().create_future()
    future.add_done_callback(lambda f: counter.append(f.result()))
    asyncio.get_event_loop().call_soon(future.set_result, 7)
    assert await future == 7
    return counter


def main():
    for _ in range(8):
        loop = asyncio.new_event_loop()
        try:
            assert loop.run_until_complete(service())[0] == 60
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
