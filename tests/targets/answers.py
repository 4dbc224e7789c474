# SPDX-License-Identifier: BSD-2-Clause
"""The work of the servers of servers.py and of the soak for a request: GET /KIND/N.

Servers of gevent, of asyncio, and with a thread or a process for each connection.

The kinds are typical uses of a server's stack: compute, recurse, wait, raise, generate, fan out,
give up after a timeout. expected() returns the correct response.
"""

import json

KINDS = ("compute", "recurse", "nap", "fail", "generate", "fan", "timeout")
NAP = 0.004
CHILDREN = 5


def mix(n, i):
    return (n * 31 + i * 7) % 65521


def compute(n):
    for i in range(40 + n % 60):
        n = mix(n, i)
    return n


def recurse(n, depth=60):
    return compute(n) if depth == 0 else mix(recurse(n, depth - 1), depth)


def raise_deep(n, depth):
    if depth == 0:
        raise ValueError(compute(n))
    raise_deep(n, depth - 1)


def fail(n):
    try:
        raise_deep(n, 20)
    except ValueError as e:
        return e.args[0]


def numbers(n):
    for i in range(30):
        n = mix(n, i)
        yield n


def generate(n):
    inner = (mix(x, 1) for x in numbers(n) if x % 3)
    return next(inner) + sum(inner)


def children(n):
    return [n + i for i in range(CHILDREN)]


PURE = {"compute": compute, "recurse": recurse, "nap": compute, "fail": fail,
        "generate": generate, "fan": lambda n: sum(compute(c) for c in children(n)),
        "timeout": lambda n: compute(n) + 1}


def answer(kind, n, value):
    return json.dumps({"kind": kind, "n": n, "value": value}).encode()


def expected(server, kind, n):
    """Returns the body of a server's response."""
    if server == "asyncio" and kind == "generate":
        return answer(kind, n, sum(mix(x, 1) for x in numbers(n) if x % 3))
    return answer(kind, n, PURE[kind](n))


def parse(path):
    kind, n = path.strip("/").split("/")
    return kind, int(n)


def read_request(stream):
    """Returns the path of the next request; None: there is none."""
    line = stream.readline()
    if not line:
        return None
    while stream.readline().strip():
        pass  # the headers
    return line.split()[1].decode()


def response(body):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


# gevent --------------------------------------------------------------------------------------

def gevent_nap(n):
    import gevent
    gevent.sleep(NAP)
    return compute(n)


def gevent_fan(n):
    import gevent
    jobs = [gevent.spawn(gevent_nap, c) for c in children(n)]
    gevent.joinall(jobs, raise_error=True)
    return sum(job.value for job in jobs)


def gevent_timeout(n):
    import gevent
    try:
        with gevent.Timeout(NAP / 4):
            gevent.sleep(10)
    except gevent.Timeout:
        return compute(n) + 1
    return -1


GEVENT = dict(PURE, nap=gevent_nap, fan=gevent_fan, timeout=gevent_timeout)


def gevent_application(environ, start_response):
    kind, n = parse(environ["PATH_INFO"])
    body = answer(kind, n, GEVENT[kind](n))
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


# asyncio -------------------------------------------------------------------------------------

async def asyncio_nap(n):
    import asyncio
    await asyncio.sleep(NAP)
    return compute(n)


async def asyncio_fan(n):
    import asyncio
    return sum(await asyncio.gather(*[asyncio_nap(c) for c in children(n)]))


async def asyncio_timeout(n):
    import asyncio
    try:
        await asyncio.wait_for(asyncio.sleep(10), NAP / 4)
    except asyncio.TimeoutError:
        return compute(n) + 1
    return -1


async def asyncio_numbers(n):
    import asyncio
    for x in numbers(n):
        if x % 8 == 0:
            await asyncio.sleep(0)
        yield x


async def asyncio_generate(n):
    inner = [mix(x, 1) async for x in asyncio_numbers(n) if x % 3]
    return sum(inner)


ASYNCIO = {"nap": asyncio_nap, "fan": asyncio_fan, "timeout": asyncio_timeout,
           "generate": asyncio_generate}


async def asyncio_connection(reader, writer):
    while True:
        line = await reader.readline()
        if not line:
            break
        while (await reader.readline()).strip():
            pass  # the headers
        kind, n = parse(line.split()[1].decode())
        value = await ASYNCIO[kind](n) if kind in ASYNCIO else PURE[kind](n)
        body = answer(kind, n, value)
        writer.write(response(body))
        await writer.drain()
    writer.close()


# threads -------------------------------------------------------------------------------------

def threads_nap(n):
    import time
    time.sleep(NAP)
    return compute(n)


def threads_fan(n):
    import threading
    values = []
    jobs = [threading.Thread(target=lambda c=c: values.append(threads_nap(c)))
            for c in children(n)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    return sum(values)


def threads_timeout(n):
    import threading
    return -1 if threading.Event().wait(NAP / 4) else compute(n) + 1


THREADS = dict(PURE, nap=threads_nap, fan=threads_fan, timeout=threads_timeout)


def blocking_connection(connection):
    """Handles the requests of a connected socket until its other end is closed."""
    with connection, connection.makefile("rb") as stream:
        path = read_request(stream)
        while path:
            kind, n = parse(path)
            connection.sendall(response(answer(kind, n, THREADS[kind](n))))
            path = read_request(stream)
