#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Pure Python programs with many calls, for benchmarks of times.

usage: programs.py NAME [SECONDS | FILE]
       programs.py --list

A program repeats one piece of work, which is always the same. It prints "ready" first, repeats
until SECONDS of CPU time have passed (default: until standard input closes or it is killed), and
prints the number of rounds and their CPU time. With FILE, of 32 bytes, it stores its progress there, and idles
while the last 8 are not 0.
"""
import asyncio
import mmap
import select
import sys
import time
from collections import deque


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def recursion():
    return fib(17)


class Tree:
    def __init__(self, key):
        self.key = key
        self.left = self.right = None

    def insert(self, key):
        if key < self.key:
            if self.left is None:
                self.left = Tree(key)
            else:
                self.left.insert(key)
        elif self.right is None:
            self.right = Tree(key)
        else:
            self.right.insert(key)

    def __iter__(self):
        if self.left is not None:
            yield from self.left
        yield self.key
        if self.right is not None:
            yield from self.right


def generators():
    tree = Tree(500)
    for i in range(150):
        tree.insert(i * 379 % 1000)
    return sum(tree) + sum(tree)


def queens_of(n, row, columns, up, down):
    if row == n:
        yield ()
        return
    for c in range(n):
        if c in columns or row + c in up or row - c in down:
            continue
        for rest in queens_of(n, row + 1, columns | {c}, up | {row + c}, down | {row - c}):
            yield (c,) + rest


def queens():
    return sum(1 for _ in queens_of(6, 0, frozenset(), frozenset(), frozenset()))


class Vector:
    __slots__ = 'x', 'y', 'z'

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z

    def __add__(self, o):
        return Vector(self.x + o.x, self.y + o.y, self.z + o.z)

    def __sub__(self, o):
        return Vector(self.x - o.x, self.y - o.y, self.z - o.z)

    def scale(self, f):
        return Vector(self.x * f, self.y * f, self.z * f)

    def dot(self, o):
        return self.x * o.x + self.y * o.y + self.z * o.z

    def unit(self):
        return self.scale(1 / self.dot(self) ** 0.5)


class Sphere:
    def __init__(self, centre, radius):
        self.centre, self.radius = centre, radius

    def hit(self, origin, ray):
        to = self.centre - origin
        along = to.dot(ray)
        gap = to.dot(to) - along * along
        room = self.radius ** 2 - gap
        return along - room ** 0.5 if room > 0 and along > 0 else None

    def normal(self, at):
        return (at - self.centre).unit()


def shade(scene, origin, ray, light):
    hits = [(t, s) for s in scene for t in [s.hit(origin, ray)] if t is not None]
    if not hits:
        return 0.1
    t, sphere = min(hits, key=lambda h: h[0])
    at = origin + ray.scale(t)
    return max(0.0, sphere.normal(at).dot(light))


def rays():
    scene = [Sphere(Vector(i - 2, i % 3 - 1, 6 + i), 1) for i in range(4)]
    light, eye, total = Vector(1, 1, -1).unit(), Vector(0, 0, 0), 0
    for y in range(8):
        for x in range(8):
            total += shade(scene, eye, Vector((x - 4) / 4, (y - 4) / 4, 1).unit(), light)
    return total


def eval_a(i, j):
    return 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1)


def times(v, transposed):
    n = range(len(v))
    if transposed:
        return [sum(eval_a(j, i) * v[j] for j in n) for i in n]
    return [sum(eval_a(i, j) * v[j] for j in n) for i in n]


def spectral():
    v = [1.0] * 24
    for _ in range(2):
        v = times(times(v, False), True)
    return v[0]


class Packet:
    def __init__(self, kind, hops):
        self.kind, self.hops = kind, hops


class Task:
    def __init__(self, name, peers):
        self.name, self.peers, self.queue, self.done = name, peers, deque(), 0

    def receive(self, packet):
        self.queue.append(packet)

    def runnable(self):
        return bool(self.queue)

    def work(self, amount):
        total = 0
        for i in range(amount):
            total += i * i
        self.done += total & 1

    def step(self):
        packet = self.queue.popleft()
        self.work(4 + packet.kind)
        if packet.hops:
            packet.hops -= 1
            self.peers[(packet.hops + packet.kind) % len(self.peers)].receive(packet)


def scheduler():
    tasks = []
    for i in range(6):
        tasks.append(Task('t%d' % i, tasks))
    for i in range(20):
        tasks[i % 6].receive(Packet(i % 3, 12))
    busy = True
    while busy:
        busy = False
        for task in tasks:
            if task.runnable():
                task.step()
                busy = True
    return sum(t.done for t in tasks)


class Point:
    __slots__ = 'x', 'y', 'z'

    def __init__(self, i):
        self.x = x = (i * 0.37) % 1.0
        self.y = x * 3
        self.z = x * x / 2

    def normalize(self):
        norm = (self.x ** 2 + self.y ** 2 + self.z ** 2) ** 0.5 + 1
        self.x /= norm
        self.y /= norm
        self.z /= norm

    def maximize(self, other):
        self.x = self.x if self.x > other.x else other.x
        self.y = self.y if self.y > other.y else other.y
        self.z = self.z if self.z > other.z else other.z
        return self


def maximize(points):
    last = points[0]
    for p in points[1:]:
        last = last.maximize(p)
    return last


def points():
    all_points = [Point(i) for i in range(600)]
    for p in all_points:
        p.normalize()
    return maximize(all_points).x


async def leaf(n):
    return n


async def branch(depth):
    if depth == 0:
        return await leaf(1)
    return sum(await asyncio.gather(branch(depth - 1), branch(depth - 1)))


def tasks():
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(branch(5))
    finally:
        loop.close()


def encode_text(s):
    return '"' + s.replace('\\', '\\\\').replace('"', '\\"') + '"'


def encode_pairs(d):
    return '{' + ', '.join(encode_text(k) + ': ' + encode(v) for k, v in sorted(d.items())) + '}'


def encode(v):
    if isinstance(v, str):
        return encode_text(v)
    if isinstance(v, dict):
        return encode_pairs(v)
    if isinstance(v, list):
        return '[' + ', '.join(map(encode, v)) + ']'
    return repr(v)


DOCUMENT = {'rows': [{'id': i, 'name': 'row "%d"' % i, 'tags': ['a', 'b', str(i)]}
                     for i in range(60)]}


def encoder():
    return len(encode(DOCUMENT))


class Lexer:
    def __init__(self, text):
        self.text, self.at = text, 0

    def peek(self):
        return self.text[self.at] if self.at < len(self.text) else ''

    def advance(self):
        c = self.peek()
        self.at += 1
        return c

    def number(self):
        digits = ''
        while self.peek().isdigit():
            digits += self.advance()
        return int(digits)

    def factor(self):
        if self.peek() == '(':
            self.advance()
            v = self.expression()
            self.advance()
            return v
        return self.number()

    def term(self):
        v = self.factor()
        while self.peek() == '*':
            self.advance()
            v = v * self.factor() % 1000003
        return v

    def expression(self):
        v = self.term()
        while self.peek() in ('+', '-') and self.peek():
            v = v + self.term() if self.advance() == '+' else v - self.term()
        return v


TEXT = '+'.join('(%d*%d-%d)*3' % (i, i + 7, i % 5) for i in range(40))


def parser():
    return Lexer(TEXT).expression()


def mandel_row(y, width):
    row = 0
    for x in range(width):
        z = c = complex(x * 3.0 / width - 2, y)
        for _ in range(24):
            if abs(z) > 2:
                break
            z = z * z + c
        else:
            row += 1
    return row


def mandel():
    return sum(mandel_row(y / 8 - 1, 32) for y in range(16))


def swap(v, i, j):
    v[i], v[j] = v[j], v[i]


def partition(v, lo, hi):
    pivot, at = v[hi], lo
    for i in range(lo, hi):
        if v[i] < pivot:
            swap(v, i, at)
            at += 1
    swap(v, at, hi)
    return at


def quicksort(v, lo, hi):
    if lo < hi:
        at = partition(v, lo, hi)
        quicksort(v, lo, at - 1)
        quicksort(v, at + 1, hi)


def sorting():
    v = [i * 7919 % 1009 for i in range(250)]
    quicksort(v, 0, len(v) - 1)
    return v[0]


class Cache:
    def __init__(self, room):
        self.room, self.items, self.order = room, {}, deque()

    def get(self, key):
        return self.items.get(key)

    def evict(self):
        del self.items[self.order.popleft()]

    def put(self, key, value):
        if len(self.items) >= self.room:
            self.evict()
        self.items[key] = value
        self.order.append(key)


def render(key):
    return '-'.join(str(key * k) for k in range(6))


def caching():
    cache = Cache(40)
    for i in range(300):
        key = i * i % 97
        if cache.get(key) is None:
            cache.put(key, render(key))
    return len(cache.items)


def neighbours(grid, x, y):
    for dx in (-1, 0, 1):
        for dy in (-1, 0, 1):
            if dx or dy:
                yield grid[(x + dx) % 12][(y + dy) % 12]


def alive(grid, x, y):
    n = sum(neighbours(grid, x, y))
    return 1 if n == 3 or (n == 2 and grid[x][y]) else 0


def life():
    grid = [[(x * 5 + y * 3) % 4 == 0 for y in range(12)] for x in range(12)]
    return sum(sum(row) for row in [[alive(grid, x, y) for y in range(12)] for x in range(12)])


def measured(f):
    def wrapper(*args):
        wrapper.calls += 1
        return f(*args)
    wrapper.calls = 0
    return wrapper


@measured
def add(a, b):
    return a + b


@measured
def square(a):
    return a * a


def mix(n):
    total = 0
    for i in range(n):
        total ^= i * 3 & 0xff
    return total


def wrappers():
    total = 0
    for i in range(250):
        total = add(total, square(i))
    return total + mix(1500)


class Visitor:
    def visit(self, node):
        return getattr(self, 'visit_' + node[0])(node)

    def visit_num(self, node):
        return node[1]

    def visit_add(self, node):
        return self.visit(node[1]) + self.visit(node[2])

    def visit_neg(self, node):
        return -self.visit(node[1])


def grow(depth):
    if depth == 0:
        return ('num', depth + 1)
    return ('add', grow(depth - 1), ('neg', grow(depth - 1)))


EXPRESSION = grow(7)


def visitor():
    return Visitor().visit(EXPRESSION)


PROGRAMS = {f.__name__: f for f in (
    recursion, generators, queens, rays, spectral, scheduler, points, tasks, encoder, parser,
    mandel, sorting, caching, life, wrappers, visitor)}


def closed():
    return bool(select.select([sys.stdin], [], [], 0)[0])


def open_progress(path):
    """Rounds, CPU time in ns at the end of the last one, rounds again."""
    with open(path, 'r+b') as f:
        return memoryview(mmap.mmap(f.fileno(), 32)).cast('Q')


def main():
    if sys.argv[1] == '--list':
        print('\n'.join(PROGRAMS))
        return
    work, seconds, progress = PROGRAMS[sys.argv[1]], None, memoryview(bytearray(32)).cast('Q')
    if len(sys.argv) > 2 and sys.argv[2][0].isdigit():
        seconds = float(sys.argv[2])
    elif len(sys.argv) > 2:
        progress = open_progress(sys.argv[2])
    print('ready', flush=True)
    rounds, begin = 0, time.process_time()
    while not closed() if seconds is None else time.process_time() - begin < seconds:
        while progress[3]:
            time.sleep(0.01)
        for _ in range(20):
            work()
            # In this order: a reader in reverse order can detect inconsistent values.
            progress[0] += 1
            progress[1] = int(time.process_time() * 1e9)
            progress[2] += 1
        rounds += 20
    print(rounds, time.process_time() - begin, flush=True)


if __name__ == '__main__':
    main()
