# SPDX-License-Identifier: BSD-2-Clause
"""Greenlets that switch in the middle of their calls: run.py greenlets KIND

    plain    greenlet itself: ping-pong at depth, ends out of order, exceptions thrown in, kills
    gevent   gevent's: a queue, a pool, sleeps

The result has the number of calls of each function of `counted`; cProfile does not follow switches.
"""

import json

WARM = 1
ROUNDS = 40

counts = {}


def counted(fn):
    """Count without a call of a Python function, in the function's own code."""
    counts[fn.__name__] = 0
    return fn


# greenlet ----------------------------------------------------------------------------------

@counted
def leaf(n):
    counts["leaf"] += 1
    return n + 1


@counted
def deep_switch(n, target, value):
    """Switch from n calls deep."""
    counts["deep_switch"] += 1
    if n == 0:
        return target.switch(value)
    return deep_switch(n - 1, target, value)


@counted
def player(first, depth):
    counts["player"] += 1
    value = first
    while value is not None:
        leaf(0)
        value = deep_switch(depth, greenlet().parent, value)
        leaf(0)
    return depth


@counted
def generator(n):
    counts["generator"] += 1
    for i in range(n):
        greenlet().parent.switch(i)
        yield i
        counts["generator"] += 1  # resumed


@counted
def from_generator(n):
    counts["from_generator"] += 1
    return sum(generator(n))


@counted
def surprised():
    counts["surprised"] += 1
    try:
        deep_switch(3, greenlet().parent, "started")
    except ValueError:
        leaf(0)
    return deep_switch(2, greenlet().parent, "caught")


@counted
def family(n):
    """Starts a greenlet within a greenlet, n deep, and leaves each by a switch."""
    counts["family"] += 1
    leaf(n)
    if n:
        child = new(family)
        child.switch(n - 1)
        leaf(n)
        greenlet().parent.switch(n)
        child.switch()
    else:
        greenlet().parent.switch(n)
    return n


@counted
def plain():
    counts["plain"] += 1
    for depth in (0, 5, 20):
        players = [new(player) for _ in range(5)]
        for p in players:
            p.switch(1, depth)
        for i in range(ROUNDS):
            for p in players[i % 5:] + players[:i % 5]:
                leaf(p.switch(i))
        for p in reversed(players):
            assert p.switch(None) == depth and p.dead
    gen = new(from_generator)
    gen.switch(4)
    while not gen.dead:
        leaf(gen.switch() or 0)
    g = new(surprised)
    assert g.switch() == "started" and g.throw(ValueError("thrown in")) == "caught"
    g.throw()  # killed where it stands
    assert g.dead
    g = new(family)
    while not g.dead:
        g.switch(6) if not g else g.switch()


# gevent ------------------------------------------------------------------------------------

@counted
def produce(queue, n):
    counts["produce"] += 1
    for i in range(n):
        queue.put(i)
        leaf(i)
    queue.put(None)


@counted
def consume(queue):
    counts["consume"] += 1
    total = 0
    while True:
        item = queue.get()
        if item is None:
            return total
        total += leaf(item)


@counted
def napper(n):
    counts["napper"] += 1
    for i in range(n):
        gevent().sleep(0)
        leaf(i)
    return n


@counted
def with_gevent():
    counts["with_gevent"] += 1
    from gevent.pool import Pool
    from gevent.queue import Queue
    queue = Queue(maxsize=3)
    jobs = [gevent().spawn(produce, queue, 50), gevent().spawn(consume, queue)]
    gevent().joinall(jobs, raise_error=True)
    assert jobs[1].value == sum(range(1, 51))
    assert Pool(4).map(napper, [5] * 10) == [5] * 10
    killed = gevent().spawn(napper, 1000)
    gevent().sleep(0)
    killed.kill()
    assert killed.dead


# -------------------------------------------------------------------------------------------

def gevent():
    import gevent as module
    return module


def greenlet():
    from greenlet import getcurrent
    return getcurrent()


def new(run):
    from greenlet import greenlet as class_
    return class_(run)


def main(kind):
    for name in counts:
        counts[name] = 0
    {"plain": plain, "gevent": with_gevent}[kind]()
    return json.dumps(counts)
