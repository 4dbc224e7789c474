# SPDX-License-Identifier: BSD-2-Clause
"""Threads that wait in known places, or run through known ones, for `pyprofctl dump`.

Run as "dump.py wait": prints the stacks according to sys._current_frames, one thread per line,
each frame as name:line, innermost first; then it waits. Run as "dump.py run": prints "ready" and runs.
"""
import asyncio
import sys
import threading
import time

N = 5
inside = threading.Semaphore(0)
gate = threading.Lock()


def wait():
    inside.release()
    with gate:
        pass


def recursive(n):
    if n:
        return recursive(
            n - 1)
    return wait()


def generator():
    yield 1
    wait()


class Caller:
    def __init__(self, n):
        self.n = [(lambda x: recursive(x))(i) for i in [n]]


async def coroutine():
    await asyncio.sleep(0)
    wait()


def in_coroutine():
    asyncio.new_event_loop().run_until_complete(coroutine())


def in_callback():
    sorted([1, 2], key=lambda x: wait() or
           x)


def stack_of(frame):
    out = []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        out.append("%s:%d" % (name, frame.f_lineno))
        frame = frame.f_back
    return " ".join(out)


def waiting():
    ways = [lambda: recursive(40), lambda: list(generator()), lambda: Caller(3), in_coroutine,
            in_callback]
    assert len(ways) == N
    gate.acquire()
    for way in ways:
        threading.Thread(target=way, daemon=True).start()
    for _ in ways:
        inside.acquire()
    time.sleep(0.2)
    me = threading.get_ident()
    stacks = [stack_of(f) for i, f in sys._current_frames().items() if i != me]
    print("\n".join(stacks), flush=True)
    time.sleep(600)


# Each of these is called from one line only, so the caller's line is known.
def even(n):
    return odd(n - 1) if n else leaf_even()


def odd(n):
    return even(n - 1)


def leaf_even():
    return 0


def one():
    return two()


def two():
    return 2


def running():
    print("ready", flush=True)
    while True:
        one()
        even(60)
        two()


if __name__ == "__main__":
    {"wait": waiting, "run": running}[sys.argv[1]]()
