# SPDX-License-Identifier: BSD-2-Clause
"""Calls at full rate, in many contexts: run.py call_storm [SECONDS]

Eight functions call each other in changing order, so that each request has another tree, in two
threads that take turns; the number of contexts is limited. 5000 generators stay suspended, more than are followed at a time, and
others are created, resumed and dropped all the time. The result has the number of requests.
"""

import proto

WARM = 0
FUNCTIONS = 8
SUSPENDED = 5000

functions = []


def make(i):
    code = ("def step_%d(seed, depth, functions):\n"
            "    n = 1\n"
            "    while depth and seed & 7 and n < 12:\n"
            "        seed = seed * 1103515245 + 12345 + %d & 0x7fffffff\n"
            "        n += functions[seed >> 8 & 7](seed >> 3, depth - 1, functions)\n"
            "    return n\n" % (i, i))
    scope = {}
    exec(compile(code, "storm_%d.py" % i, "exec"), scope)
    return scope["step_%d" % i]


def waits(n):
    for i in range(n):
        yield i


def handle_request(seed, held):
    n = functions[seed & 7](seed, 4, functions)
    generator = waits(3)
    next(generator)
    held[seed % len(held)] = generator
    for _ in waits(2):
        n += 1
    return n


def run(end, clock, counts, first):
    held = [waits(2) for _ in range(SUSPENDED)]
    for generator in held:
        next(generator)
    seed = first
    while clock() < end:
        for _ in range(20):
            seed = seed * 69069 + 1 & 0x7fffffff
            handle_request(seed >> 4, held)
            counts[first] += 1


def main(seconds="2"):
    import time
    functions[:] = [make(i) for i in range(FUNCTIONS)]
    end = time.perf_counter() + float(seconds)
    counts = [0, 0]
    proto.run_threads([lambda i=i: run(end, time.perf_counter, counts, i) for i in range(2)])
    return '{"requests": %d}' % sum(counts)
