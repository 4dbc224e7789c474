# SPDX-License-Identifier: BSD-2-Clause
"""A pool of workers that handles requests: run.py slow_service [REQUESTS]

A few requests are slow, for a reason that is planted in them: a lock that another thread holds, the
GIL, which another thread does not release, a thousand small queries, or a file that takes long to be
on disk (a pipe that is written to later stands for it). The result has the number of requests and of
failures, the planted ones by the function that is slow, and `slow_others`: further requests that took
long by the program's own clock, because the machine was busy.

With _thread: the other code of threading depends on timing.
"""

import _thread
import json
import os
import sys
import tempfile
import time

import proto

WARM = 0
WORKERS = 4
BATCH = 100
QUERIES = 1000
DELAY = 0.25  # seconds
LONG = 0.14  # less than what the observer asks for
NO_SWITCH = 100.0  # seconds: a thread keeps the GIL until it gives it up

# Number of the request in its hundred -> function, in every third, fifth and fourth batch.
PLANTED = {"take_shared": 3, "list_items": 5, "slow_fsync": 4}


def held():
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


def hold(shared, taken):
    shared.acquire()
    taken.release()
    time.sleep(DELAY)
    shared.release()


def take_shared():
    """Another thread holds the lock."""
    shared, taken = _thread.allocate_lock(), held()
    _thread.start_new_thread(hold, (shared, taken))
    taken.acquire()
    shared.acquire()
    shared.release()


def hog(begun):
    begun.release()
    end = time.monotonic() + DELAY
    while time.monotonic() < end:
        pass


def compute():
    """Another thread keeps the GIL. The other workers have nothing to do meanwhile."""
    begun = held()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(NO_SWITCH)
    _thread.start_new_thread(hog, (begun,))
    begun.acquire()
    sys.setswitchinterval(interval)


def query(number):
    time.sleep(0.0002)
    return number


def list_items():
    """One query per item."""
    total = 0
    for i in range(QUERIES):
        total += query(i)
    return total


def write_later(fd):
    time.sleep(DELAY)
    os.write(fd, b"x")


def slow_fsync():
    r, w = os.pipe()
    with tempfile.TemporaryFile() as f:
        os.write(f.fileno(), b"x" * 4096)
        os.fsync(f.fileno())
        _thread.start_new_thread(write_later, (w,))
        os.read(r, 1)
    os.close(r)
    os.close(w)


SLOW = {"take_shared": take_shared, "compute": compute, "list_items": list_items,
        "slow_fsync": slow_fsync}


def parse(number):
    return {"number": number, "even": number % 2 == 0}


def answer(request):
    return "even" if request["even"] else "odd"


def handle_request(number, planted):
    request = parse(number)
    if planted:
        SLOW[planted]()
    return answer(request)


def planted_in(number):
    """The function that makes this request slow, or None."""
    batch, index = divmod(number, BATCH)
    for i, name in enumerate(sorted(PLANTED)):
        if index == 20 + i and batch % PLANTED[name] == PLANTED[name] - 1:
            return name
    return None


class Pool:
    """Workers that handle a batch of requests, each beginning with the first that is left."""

    def __init__(self):
        self.batch = []
        self.go, self.done = [held() for _ in range(WORKERS)], [held() for _ in range(WORKERS)]
        self.handled, self.planted, self.slow_others = [], {}, []
        self.ended = False

    def work(self, index):
        while True:
            self.go[index].acquire()
            if self.ended:
                return
            while True:
                try:
                    number, planted = self.batch.pop()
                except IndexError:
                    break
                self.handle(number, planted)
            self.done[index].release()

    def handle(self, number, planted):
        start = time.monotonic()
        result = handle_request(number, planted)
        if time.monotonic() - start >= LONG and not planted:
            self.slow_others.append(number)
        self.handled.append(result == ("odd" if number % 2 else "even"))

    def run(self, batch):
        for _, planted in batch:
            if planted:
                self.planted[planted] = self.planted.get(planted, 0) + 1
        self.batch.extend(reversed(batch))
        for lock in self.go:
            lock.release()
        for lock in self.done:
            lock.acquire()

    def dispatch(self, requests):
        for first in range(0, requests, BATCH):
            self.run([(n, planted_in(n)) for n in range(first, first + BATCH)])
            if first // BATCH % 7 == 6 and getattr(sys, "_is_gil_enabled", lambda: True)():
                self.run([(first, "compute")])
        self.ended = True
        for lock in self.go:
            lock.release()


def main(requests="2000"):
    pool = Pool()
    bodies = [lambda i=i: pool.work(i) for i in range(WORKERS)]
    proto.run_threads(bodies + [lambda: pool.dispatch(int(requests))])
    return json.dumps({"requests": len(pool.handled), "failed": pool.handled.count(False),
                       "planted": pool.planted, "slow_others": len(pool.slow_others)})
