# SPDX-License-Identifier: BSD-2-Clause
"""Threads that cause no events: blocked.py read|spin|locks

    read    waits in a read, three functions deep; a line on stdin lets it continue
    spin    runs a loop that calls nothing, and never ends
    locks   THREADS threads wait for a lock each; a line releases them all

Runs without run.py, like deep.py: `ready`, a line, `done`, a line, exit.
"""

import _thread
import os
import sys

THREADS = 5


def say(line):
    os.write(1, (line + "\n").encode())


def blocked_read():
    return os.read(0, 1)


def middle():
    return blocked_read()


def after():
    return 1


def read():
    say("ready")
    middle()
    after()


def spinning():
    say("ready")
    while True:
        pass


def blocked_on_lock(lock, started):
    started.release()
    lock.acquire()


def waiter(lock, started, ended):
    blocked_on_lock(lock, started)
    after()
    ended.release()


def held():
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


def locks():
    started, ended = [held() for _ in range(THREADS)], [held() for _ in range(THREADS)]
    mine = [held() for _ in range(THREADS)]
    for i in range(THREADS):
        _thread.start_new_thread(waiter, (mine[i], started[i], ended[i]))
    for lock in started:
        lock.acquire()
    say("ready")
    os.read(0, 1)
    for lock in mine:
        lock.release()
    for lock in ended:
        lock.acquire()


def main():
    {"read": read, "spin": spinning, "locks": locks}[sys.argv[1]]()
    say("done")
    os.read(0, 1)
    os._exit(0)


main()
