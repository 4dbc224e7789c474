# SPDX-License-Identifier: BSD-2-Clause
"""Threads, local variables and asyncio's tasks, for `pyprofctl dump`.

Run as "dump_details.py names|locals|tasks|greenlets|switching|busy|kinds": prints what the program itself knows, one item per line,
then "end", and waits.
"""
import asyncio
import os
import socket
import sys
import threading
import time

forever = threading.Event()
ready = threading.Semaphore(0)


def say(lines):
    sys.stdout.buffer.write("\n".join(list(lines) + ["end\n"]).encode())
    sys.stdout.flush()


# names ------------------------------------------------------------------------------------------

def waiting():
    ready.release()
    forever.wait()


def names():
    wanted = ["worker", "\u00dcbung \u65e5\u672c \U0001f600", "", "x" * 128, 'a "b" \t c']
    threads = [threading.Thread(target=waiting, name=name, daemon=True) for name in wanted[1:]]
    threads.append(threading.Thread(target=waiting, daemon=True))
    for thread in threads:
        thread.start()
        ready.acquire()
    threads[-1].name = wanted[0]
    say([thread.name for thread in threading.enumerate()])
    forever.wait()


# locals -----------------------------------------------------------------------------------------

class Plain:
    pass


class Number(int):
    pass


def text(value):
    """What the dump shows of a value."""
    kind = type(value)
    if kind is int and abs(value) >= 1 << 120:
        return "<int of up to %d bits>" % (-(-abs(value).bit_length() // 30) * 30)
    if kind in (str, bytes):
        quoted = "".join(c if ord(c) >= 0x80 else repr(c)[1:-1] if c != "'" else "\\'"
                         for c in (value.replace("\0", "\ufffd") if kind is str else
                                   value.decode("latin-1"))[:40])
        if kind is bytes:
            quoted = "".join(c if ord(c) < 0x80 else "\\x%02x" % ord(c) for c in quoted)
        return "%s'%s'%s" % ("" if kind is str else "b", quoted, "..." if len(value) > 40 else "")
    if kind in (int, float, bool, type(None)):
        return repr(value) if kind is not float else number(value)
    if kind in (list, tuple, dict, set, frozenset):
        return "<%s of %d>" % (kind.__name__, len(value))
    return "<%s>" % kind.__name__


def number(value):
    for digits in range(1, 18):
        short = "%.*g" % (digits, value)
        if float(short) == value or value != value:
            break
    return short if "e" in short or "." in short or "n" in short else short + ".0"


def simple(arg, *args, key=1, **kwargs):
    zero = 0
    small = -5
    digit = (1 << 30) - 1
    digits = -(1 << 30)
    large = 10 ** 30
    largest = (1 << 120) - 1
    huge = -(1 << 120)
    yes = True
    no = False
    none = None
    half = 0.5
    third = 1 / 3
    big = 1e300
    whole = -3.0
    infinite = float("inf")
    empty = ""
    word = "it's\n\x00\x7f\\"
    word_2 = "gr\u00fc\u00df dich \u65e5\u672c \U0001f600"
    long = "y" * 41
    data = b"\x00a'\xff"
    more_data = b"z" * 1000
    things = [1, 2, 3], (), {}, {1: 2}, {1, 2}, frozenset("a")
    a_list, a_tuple, a_dict, b_dict, a_set, frozen = things
    plain = Plain()
    kind = Plain
    derived = Number(7)
    return check(locals().copy())


def closures(cell, other):
    plain = 1

    def inner(own):
        late = None
        mine = [cell, own]
        del late
        return check(locals().copy())

    other += 1
    return inner(other)


def many():
    scope = {"check": check}
    exec("def f():\n%s    return check(locals().copy())"
         % "".join("    v%02d = %d\n" % (i, i) for i in range(40)), scope)
    scope["f"]()


def check(variables):
    lines.append("%s %s" % (sys._getframe(1).f_code.co_name,
                            "; ".join("%s = %s" % (name, text(variables[name]))
                                      for name in sorted(variables))))
    ready.release()
    forever.wait()


lines = []


def variables():
    for way in (lambda: simple(1, 2, 3, other=4), lambda: closures("c", 2), many):
        threading.Thread(target=way, daemon=True).start()
        ready.acquire()
    say(lines)
    forever.wait()


# tasks ------------------------------------------------------------------------------------------

waits_for = {}
generators = {}


async def leaf(n):
    await asyncio.sleep(
        1000 + n)


async def one():
    await leaf(1)


async def two():
    for _ in range(1):
        await leaf(2)


async def generating():
    yield 1
    try:
        pass
    finally:
        await leaf(3)


async def over_generator():
    generators["agen"] = generating()
    async for _ in generators["agen"]:
        pass


class Awaitable:
    def __await__(self):
        generators["wrapped"] = leaf(4)
        yield from generators["wrapped"].__await__()


async def over_awaitable():
    await Awaitable()


async def gathers():
    await asyncio.gather(*waits_for["gathers"])


async def waits():
    await asyncio.wait(waits_for["waits"])


async def awaits():
    await waits_for["awaits"][0]


async def with_limit():
    await asyncio.wait_for(waits_for["with_limit"][0], 1000)


async def on_future():
    await asyncio.get_event_loop().create_future()


async def grouped():
    await leaf(5)


async def groups():
    async with asyncio.TaskGroup() as group:
        waits_for["groups"] = [group.create_task(grouped())]


async def computes():
    """Runs for ever, while the others wait: each does so after a few turns of the loop."""
    for _ in range(100):
        await asyncio.sleep(0)
    ready.release()
    forever.wait()


def chain(awaited):
    """The frames of a coroutine, innermost first."""
    out = []
    while awaited is not None:
        if type(awaited).__name__ == "async_generator_asend":
            awaited = generators["agen"]
        if type(awaited).__name__ == "coroutine_wrapper":
            awaited = generators["wrapped"]
        for kind in ("cr", "gi", "ag"):
            if hasattr(awaited, kind + "_frame"):
                frame, code = getattr(awaited, kind + "_frame"), getattr(awaited, kind + "_code")
                out.append("%s:%d" % (getattr(code, "co_qualname", code.co_name), frame.f_lineno))
                awaited = getattr(awaited, kind + "_await" if kind != "gi" else "gi_yieldfrom")
                break
        else:
            break
    return out[::-1]


def coroutine_of(task):
    return task.get_coro() if hasattr(task, "get_coro") else task._coro


def describe(task):
    names = sorted(coroutine_of(t).cr_code.co_name
                   for t in waits_for.get(coroutine_of(task).cr_code.co_name, ()))
    return "%s %s > %s" % (task.get_name() if hasattr(task, "get_name") else "-",
                           " ".join(chain(coroutine_of(task))), ",".join(names))


def tasks_in(loop):
    asyncio.set_event_loop(loop)
    new = loop.create_task
    first = new(one())
    waits_for["gathers"] = [first, new(two())]
    waits_for["waits"] = [first]
    waits_for["awaits"] = [new(gathers())]
    waits_for["with_limit"] = [new(over_generator())]
    ways = [waits, awaits, with_limit, on_future, over_awaitable]
    made = [new(way()) for way in ways + ([groups] if hasattr(asyncio, "TaskGroup") else [])]
    if hasattr(made[0], "set_name"):
        made[0].set_name("n\u00e4me")
    new(computes())
    loop.run_forever()


def tasks():
    """The last task runs; its chain is that of its thread's stack."""
    loop = asyncio.new_event_loop()
    done = asyncio.new_event_loop()
    done.run_until_complete(asyncio.sleep(0))
    threading.Thread(target=tasks_in, args=(loop,), daemon=True).start()
    ready.acquire()
    found = (asyncio.all_tasks if hasattr(asyncio, "all_tasks") else asyncio.Task.all_tasks)(loop)
    say(describe(task) for task in found
        if coroutine_of(task).cr_code.co_name != "computes")
    forever.wait()


# greenlets --------------------------------------------------------------------------------------

def switches():
    main_greenlet[0].switch()


def switches_deep(n):
    if n:
        return [switches_deep(n - 1) for _ in
                "x"]
    return switches()


def stays():
    lines.append(stack_of(main_greenlet[0].gr_frame))
    say(lines)
    time.sleep(600)


def stack_of(frame):
    out = []
    while frame:
        code = frame.f_code
        out.append("%s:%d" % (getattr(code, "co_qualname", code.co_name), frame.f_lineno))
        frame = frame.f_back
    return " ".join(out)


main_greenlet = []


def greenlets():
    try:
        import greenlet
    except ImportError:
        say([])
        time.sleep(600)

    class Derived(greenlet.greenlet):
        pass

    main_greenlet.append(greenlet.getcurrent())
    made = [greenlet.greenlet(switches), Derived(lambda: switches_deep(5))]
    ended = greenlet.greenlet(len)
    ended.switch("")
    new = greenlet.greenlet(switches)
    for one_of in made:
        one_of.switch()
        lines.append(stack_of(one_of.gr_frame))
    greenlet.greenlet(stays).switch()
    del ended, new


def switching():
    """For a fifth of the time in a greenlet without frames, as in the middle of a switch to a new one."""
    try:
        import greenlet
    except ImportError:
        say([])
        time.sleep(600)
    say(["switches"])
    while True:
        greenlet.greenlet(sum).switch(range(20000))
        sum(range(80000))


# kinds of waiting -------------------------------------------------------------------------------

def computing():
    while True:
        pass


def locked(lock):
    with lock:
        pass


def kinds():
    lock, (one_end, other_end) = threading.Lock(), socket.socketpair()
    one_end.settimeout(1000)
    read_end, _ = os.pipe()
    lock.acquire()
    ways = [(computing, "computes"), (computing, "computes"),
            (lambda: locked(lock), "lock wait for a lock"),
            (lambda: time.sleep(1000), "sleep clock_nanosleep"),
            (lambda: one_end.recv(1), "syscall poll of descriptor %d (unix unnamed)"
             % one_end.fileno()),
            (lambda: other_end.recv(1), "syscall recvfrom of descriptor %d (unix unnamed)"
             % other_end.fileno()),
            (lambda: os.read(read_end, 1), "syscall read of descriptor %d (pipe" % read_end)]
    for way, text in ways:
        threading.Thread(target=way, name=text, daemon=True).start()
    threading.current_thread().name = "main"
    say([])
    computing()


# A loop that runs -------------------------------------------------------------------------------

async def inner(n):
    for _ in range(n):
        await asyncio.sleep(0)


async def outer(n):
    await inner(n)


async def spawns():
    while True:
        await asyncio.gather(*[outer(i % 3) for i in range(5)])


async def runs():
    await asyncio.gather(*[spawns() for _ in range(5)])


def busy():
    say([])
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(runs())


if __name__ == "__main__":
    {"names": names, "locals": variables, "tasks": tasks, "greenlets": greenlets,
     "switching": switching, "busy": busy, "kinds": kinds}[sys.argv[1]]()
