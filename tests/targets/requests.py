# SPDX-License-Identifier: BSD-2-Clause
"""A thread per request: requests.py CHUNK

Prints `ready`; after each line on stdin it runs CHUNK threads, a few at a time, and prints `done`; at
the end of stdin it ends. Each thread calls handle_request, which calls step_0 and step_1. With
_thread: the other code of threading depends on timing.
"""

import _thread
import os
import sys

AT_ONCE = 8


def say(line):
    os.write(1, (line + "\n").encode())


def step_0():
    pass


def step_1():
    pass


def handle_request(ended):
    step_0()
    step_1()
    ended.release()


def serve(n):
    ended = [_thread.allocate_lock() for _ in range(AT_ONCE)]
    for i in range(n):
        lock = ended[i % AT_ONCE]
        lock.acquire()
        _thread.start_new_thread(handle_request, (lock,))
    for lock in ended:
        lock.acquire()


def main():
    say("ready")
    while os.read(0, 1):
        serve(int(sys.argv[1]))
        say("done")
    os._exit(0)


main()
