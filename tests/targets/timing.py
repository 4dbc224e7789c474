# SPDX-License-Identifier: BSD-2-Clause
"""Functions whose times are known: run.py timing [SECONDS]

Each is measured from inside with the thread's CPU clock and the wall clock; the result holds both in
seconds, by function, for comparison with cumtime on the cpu and wall clocks.
"""

import _thread
import time

WARM = 0


def thread_time():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)  # time.thread_time is 3.7+


def spin_nested(seconds):
    spin_inner(seconds)


def spin_inner(seconds):
    """Uses the CPU for this time, without calls that are traced."""
    end = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) + seconds
    while time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) < end:
        pass


def sleep(seconds):
    time.sleep(seconds)


def hold(lock, held, seconds):
    with lock:
        held.release()
        time.sleep(seconds)


def wait_for_lock(lock):
    with lock:
        pass


def spin_sleep(seconds):
    """Works for half of the time, and waits for the other half."""
    spin_inner(seconds / 2)
    time.sleep(seconds / 2)


def timed(into, fn, *args):
    cpu, wall = thread_time(), time.perf_counter()
    fn(*args)
    into.append('"%s": {"cpu": %.6f, "wall": %.6f}'
                % (fn.__name__, thread_time() - cpu, time.perf_counter() - wall))


def main(seconds="1"):
    seconds = float(seconds)
    into = []
    timed(into, spin_nested, seconds)
    timed(into, sleep, seconds)
    timed(into, spin_sleep, seconds)
    lock, held = _thread.allocate_lock(), _thread.allocate_lock()
    held.acquire()
    _thread.start_new_thread(hold, (lock, held, seconds))
    held.acquire()
    timed(into, wait_for_lock, lock)
    return "{%s}" % ", ".join(into)
