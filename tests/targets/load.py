# SPDX-License-Identifier: BSD-2-Clause
"""Six threads that call functions all the time and check the results: load.py [PAUSE]

PAUSE: seconds that each of them sleeps after each round (0).
Prints `ready`, then executes commands from stdin:

    fork N   N children, each: `child PID`, works, waits, works again; `forked` when all are there
    join     the children may end; `joined ok` if all results were right
    run N    runs N programs and reads their output; `run ok` if it was right
    rounds   `rounds NUMBER`: the amount of work done so far
    exec     executes another program, which prints `executed` and waits for a line or the end of stdin
    stop     or the end of stdin: `checked ok` if all work was right, exit with 0
"""

import _thread
import os
import subprocess
import sys
import time
import warnings

from proto import read_line, say

THREADS = 6
PAUSE = float(sys.argv[1]) if len(sys.argv) > 1 else 0
OTHER = "echo executed; read line; exit 0"


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def count(n):
    for i in range(n):
        yield i


def fail(depth):
    if depth == 0:
        raise ValueError(depth)
    fail(depth - 1)


def caught():
    try:
        fail(5)
    except ValueError:
        return True
    return False


class Point:
    def __init__(self, x):
        self.x = x

    @property
    def double(self):
        return 2 * self.x


def work():
    return (fib(9) == 34 and sum(count(20)) == 190 and caught() and Point(4).double == 8
            and sorted([3, 1, 2], key=lambda x: -x) == [3, 2, 1])


class Worker:
    stop = False

    def __init__(self):
        self.rounds = 0
        self.right = True
        self.started, self.ended = _thread.allocate_lock(), _thread.allocate_lock()
        self.started.acquire()
        self.ended.acquire()
        _thread.start_new_thread(self.run, ())

    def run(self):
        self.started.release()
        while not Worker.stop or not self.rounds:
            self.right = work() and self.right
            self.rounds += 1
            if PAUSE:
                time.sleep(PAUSE)
        self.ended.release()


def child(release):
    ok = all(work() for _ in range(20))
    os.read(release, 1)
    ok = all(work() for _ in range(20)) and ok
    os._exit(0 if ok else 1)


class Children:
    def __init__(self, n):
        read_end, self.release = os.pipe()
        self.pids = []
        for _ in range(n):
            pid = os.fork()
            if pid == 0:
                os.close(self.release)
                child(read_end)
            self.pids.append(pid)
            say("child %d" % pid)
        os.close(read_end)
        say("forked")

    def join(self):
        os.close(self.release)
        return all([os.waitpid(pid, 0)[1] == 0 for pid in self.pids])


def run(n):
    return all([subprocess.check_output([sys.executable, "-c", "print(6 * 7)"]).strip() == b"42"
                for _ in range(n)])


def ok(right):
    return "ok" if right else "wrong"


def stop(workers):
    Worker.stop = True
    for worker in workers:
        worker.ended.acquire()
    say("checked " + ok(all(worker.right for worker in workers)))
    os._exit(0)


def main():
    warnings.simplefilter("ignore")  # about forking a process with threads
    workers = [Worker() for _ in range(THREADS)]
    children = None
    for worker in workers:
        worker.started.acquire()
    say("ready")
    while True:
        word, _, number = read_line().partition(" ")
        if word == "fork":
            children = Children(int(number))
        elif word == "join":
            say("joined " + ok(children.join()))
        elif word == "run":
            say("run " + ok(run(int(number))))
        elif word == "rounds":
            say("rounds %d" % sum(worker.rounds for worker in workers))
        elif word == "exec":
            os.execv("/bin/sh", ["sh", "-c", OTHER])
        else:
            stop(workers)


main()
