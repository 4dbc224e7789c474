# SPDX-License-Identifier: BSD-2-Clause
"""Processes and threads that come and go: churn.py PER_MINUTE TAG

Forks PER_MINUTE children a minute, which compute and end; one in 50 executes another interpreter instead. A
thread starts and ends with each child. Prints the number of children so far for each line on standard
input, and ends with it. TAG is for the daemon's --match.
"""

import os
import random
import sys
import threading
import time

EXEC_EVERY = 50
LIVES = (0.05, 0.1, 0.1, 0.2)  # seconds; too short to be sampled
LONG, LONG_PER_MINUTE = 4.0, 60
EXECUTED = 2.5
STEP = 0.05
BUSY = 0.02  # share of the life that a long one computes


def work(n):
    return sum(i * i for i in range(n))


def live(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        until = time.process_time() + (BUSY * STEP if seconds >= LONG else 0)
        work(200)
        while time.process_time() < until:
            work(200)
        time.sleep(STEP)


def child(n, per_minute):
    rng = random.Random(n)
    if n % EXEC_EVERY == 0:
        os.execv(sys.executable, [sys.executable, __file__, "live", str(EXECUTED), sys.argv[2]])
    live(LONG if rng.random() < LONG_PER_MINUTE / per_minute else rng.choice(LIVES))
    os._exit(0)


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def churn(per_minute):
    due = time.monotonic()
    while os.getppid() != 1 and not ended.is_set():
        counted[0] += 1
        if os.fork() == 0:
            child(counted[0], per_minute)
        threading.Thread(target=live, args=(0.1,), daemon=True).start()
        due = max(due + 60.0 / per_minute, time.monotonic() - 1)
        ended.wait(max(0, due - time.monotonic()))
        reap()


def answer():
    for _ in sys.stdin:
        print(counted[0], flush=True)
    ended.set()


counted = [0]
ended = threading.Event()

if __name__ == "__main__":
    if sys.argv[1] == "live":
        live(float(sys.argv[2]))
    else:
        threading.Thread(target=answer, daemon=True).start()
        churn(float(sys.argv[1]))
