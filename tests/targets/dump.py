# SPDX-License-Identifier: BSD-2-Clause
"""Threads that wait in known places, or run through known ones, for `pyprofctl dump`.

Run as "dump.py wait": prints the stacks according to sys._current_frames, one thread per line,
each frame as name:line, innermost first; then it waits. Run as "dump.py run": prints "ready" and runs.
"""
import asyncio
import sys
import threading
import time

N = 13
inside = threading.Semaphore(0)
gate = threading.Lock()


def wait():
    inside.release()
    gate.acquire()


def at_gate(frame):
    """Whether a thread's innermost line is the last one of wait()."""
    code = frame.f_code
    return code is wait.__code__ and frame.f_lineno == code.co_firstlineno + 2


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


def over_lines():
    return max(
        1,
        recursive(
            0) or
        2)


def in_loops():
    n = 3
    while n:
        n -= 1
        for i in range(
                2):
            if not n and i:
                wait()
            else:
                continue


def raises():
    raise ValueError(
        "x")


def in_except():
    try:
        raises()
    except (KeyError,
            ValueError):
        wait()


def in_finally():
    try:
        try:
            return 1
        finally:
            wait()
    finally:
        pass


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        wait()


def in_with():
    with Manager(
    ):
        raises()


def in_comprehension():
    return [x for x in {
        y: wait()
        for y in range(1)}]


def delegated():
    for i in (x for x in [1]):
        yield i
    yield from generator()


def in_delegated():
    for _ in delegated():
        pass


class Descriptor:
    @property
    def value(self):
        return self[0]

    def __getitem__(self, i):
        return wait()

    def __del__(self):
        pass


def in_methods():
    exec("""
def made(x,
         y=1):
    return x.value

made(Descriptor())
""", {"Descriptor": Descriptor})


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
            in_callback, over_lines, in_loops, in_except, in_finally, in_with, in_comprehension,
            in_delegated, in_methods]
    assert len(ways) == N
    gate.acquire()
    for way in ways:
        threading.Thread(target=way, daemon=True).start()
    for _ in ways:
        inside.acquire()
    me = threading.get_ident()
    while True:
        frames = [f for i, f in sys._current_frames().items() if i != me]
        if all(map(at_gate, frames)):
            break
        time.sleep(0.001)
    stacks = [stack_of(f) for f in frames]
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
