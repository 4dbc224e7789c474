# SPDX-License-Identifier: BSD-2-Clause
"""Functions that end in every way but by an exception, often; then one raises: run.py raising [ROUNDS]

The exception leaves bad() and middle(), and outer() handles it.
"""

WARM = 0


def value(n):
    return n


def constant(_):
    return 1


def nothing(_):
    pass


def handles(_):
    try:
        {}[1]
    except KeyError:
        return 2
    finally:
        nothing(1)


def generator(n):
    for i in range(n):
        yield i


def delegates(n):
    yield from generator(n)
    return 3


class Awaitable:
    def __await__(self):
        yield 1
        return 4


async def coroutine():
    return await Awaitable()


class Thing:
    def __init__(self):
        self.n = 1

    def __getitem__(self, i):
        return i

    @property
    def attribute(self):
        return self.n


def closes():
    g = generator(3)
    next(g)
    return g


def normal():
    thing = Thing()
    total = value(1) + constant(1) + handles(1) + thing[1] + thing.attribute
    total += sum(delegates(3)) + sum([value(i) for i in range(3)]) + (lambda: 5)()
    nothing(1)
    c = coroutine()
    c.send(None)
    try:
        c.send(None)
    except StopIteration:
        pass
    for _ in closes():
        total += 1
    return total


def bad():
    raise ValueError("planted")


def middle():
    bad()
    return 1


def outer():
    try:
        return middle()
    except ValueError:
        return 0


def main(rounds="1000"):
    for _ in range(int(rounds)):
        normal()
    outer()
    return '{"rounds": %s}' % rounds
