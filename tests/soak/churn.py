# SPDX-License-Identifier: BSD-2-Clause
"""Processes and threads that come and go: churn.py PER_MINUTE TAG

Forks PER_MINUTE children a minute, which compute and end; one in 50 executes another interpreter instead. A
thread starts and ends with each child. Ends when its standard input does. TAG is for the daemon's --match.
"""

import os
import random
import sys
import threading
import time

EXEC_EVERY = 50
LIVES = (0.05, 0.1, 0.1, 0.2, 4.0)  # seconds; most are too short to be sampled
BUSY = 0.02  # share of its life that a child computes


def work(n):
    return sum(i * i for i in range(n))


def live(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        until = time.process_time() + BUSY * 0.05
        while time.process_time() < until:
            work(200)
        time.sleep(0.05)


def child(n):
    seconds = random.Random(n).choice(LIVES)
    if n % EXEC_EVERY == 0:
        os.execv(sys.executable, [sys.executable, __file__, "live", "4", sys.argv[2]])
    live(seconds)
    os._exit(0)


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def churn(per_minute):
    n = 0
    while os.getppid() != 1 and not ended.is_set():
        n += 1
        if os.fork() == 0:
            child(n)
        thread = threading.Thread(target=live, args=(0.1,), daemon=True)
        thread.start()
        ended.wait(60.0 / per_minute)
        reap()
    print(n, flush=True)


ended = threading.Event()


def wait_for_end():
    sys.stdin.read()
    ended.set()


if __name__ == "__main__":
    if sys.argv[1] == "live":
        live(float(sys.argv[2]))
    else:
        threading.Thread(target=wait_for_end, daemon=True).start()
        churn(float(sys.argv[1]))
