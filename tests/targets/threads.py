# SPDX-License-Identifier: BSD-2-Clause
"""Threads that start and end: threads.py

After a line on stdin SHORT threads live briefly, a few at a time, and NAMED ones, called worker-0
and so on, work and then wait. `done`; after another line these end too, `ended`, a line, exit.
Thread number i calls `step` steps(i) times, below a function of its kind. With _thread:
the other code of threading depends on timing.
"""

import _thread
import os

SHORT = 200
NAMED = 4
AT_ONCE = 8


def say(line):
    os.write(1, (line + "\n").encode())


def step():
    return 1


def steps(i):
    return 10 + i % 7


def short(i):
    for _ in range(steps(i)):
        step()


def named(i, release):
    with open("/proc/thread-self/comm", "w", closefd=True) as comm:
        comm.write("worker-%d" % i)
    for _ in range(1000 * (i + 1)):
        step()
    return release


def short_thread(i, ended):
    short(i)
    ended.release()


def named_thread(i, release, at_work, ended):
    named(i, release)
    at_work.release()
    release.acquire()
    ended.release()


def held():
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


def run_short():
    for first in range(0, SHORT, AT_ONCE):
        ended = [held() for _ in range(AT_ONCE)]
        for k in range(AT_ONCE):
            _thread.start_new_thread(short_thread, (first + k, ended[k]))
        for lock in ended:
            lock.acquire()


def main():
    say("ready")
    os.read(0, 1)
    release, at_work, ended = [[held() for _ in range(NAMED)] for _ in range(3)]
    for i in range(NAMED):
        _thread.start_new_thread(named_thread, (i, release[i], at_work[i], ended[i]))
    run_short()
    for lock in at_work:
        lock.acquire()
    say("done")
    os.read(0, 1)
    for lock in release:
        lock.release()
    for lock in ended:
        lock.acquire()
    say("ended")
    os.read(0, 1)
    os._exit(0)


main()
