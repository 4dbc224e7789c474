# SPDX-License-Identifier: BSD-2-Clause
"""(No run.py.) Steady work for a sampler, until it is killed. `shares.py WHAT`:

plain    one(), two() and three() take a sixth, a third and a half of the time
threads  two threads, each in its own function
deep N   N calls deep
calls    of an empty function; bursts: of 1000, with pauses; halves: half of the time in a loop; loop: no calls at all
search   half of the time max(), half of it a loop
made     functions that are made, run briefly and are freed, so that others reuse their memory
"""
import sys
import threading
import time


def work(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def one(n):
    return work(n)


def two(n):
    return work(2 * n)


def three(n):
    return work(3 * n)


def plain():
    # Rounds of equal length would keep step with a timer.
    n = 0
    while True:
        n = (1103 * n + 331) % 1009
        one(500 + n)
        two(500 + n)
        three(500 + n)


def left():
    while True:
        work(1000)


def right():
    while True:
        work(1000)


def nothing():
    pass


def calls():
    while True:
        nothing()


def bursts():
    while True:
        for _ in range(1000):
            nothing()
        time.sleep(0.02)


def loop():
    n = 0
    while True:
        n += 1


def halves():
    while True:
        work(3000)
        for _ in range(1000):
            nothing()


def searches(data):
    return max(data)


def loops(data):
    return work(len(data) // 8)


def search():
    data = list(range(300000))
    spent = {searches: 0.0, loops: 0.0}
    while True:
        begun = time.process_time()
        part = min(spent, key=spent.get)
        part(data)
        spent[part] += time.process_time() - begun


def threads():
    threading.Thread(target=left, daemon=True).start()
    right()


def deep(n):
    if n > 1:
        return deep(n - 1)
    while True:
        work(1000)


def made():
    n = 0
    while True:
        n += 1
        names = {"work": work}
        exec("def made_%d():\n    return work(3000)\n" % n, names)
        names["made_%d" % n]()


def main(what, *numbers):
    sys.setrecursionlimit(100000)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    globals()[what](*map(int, numbers))


main(*sys.argv[1:])
