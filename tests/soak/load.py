# SPDX-License-Identifier: BSD-2-Clause
"""Clients of servers, which check every response and take its time: load.py COUNTS SERVER...

SERVER is KIND:PORT:KEEP, KEEP 1: connections are kept, 0: a new one for each request. For each line on standard
input it prints one of JSON: for each server "n", "p50", "p99" and "max" (seconds) of the responses since the line
before, and "error", the first one or null. Ends when standard input does.

COUNTS: a file in which each client has two numbers of 64 bits: requests begun, responses received. Those of a
server's clients are next to each other (counts()).
"""

import http.client
import json
import mmap
import os
import random
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "targets"))
import answers  # noqa: E402

CLIENTS = 2      # of each server
THINK = 0.5      # seconds between requests, at most
DEADLINE = 600   # seconds for one response: only a server that hangs takes longer
NUMBERS = struct.Struct("<QQ")


ended = threading.Event()


def counts(numbers, server):
    """Returns the requests begun and the responses received of the server with this index."""
    pairs = [NUMBERS.unpack_from(numbers, NUMBERS.size * (CLIENTS * server + i)) for i in range(CLIENTS)]
    return sum(p[0] for p in pairs), sum(p[1] for p in pairs)


class Load:
    """The clients of one server."""

    def __init__(self, text):
        self.kind, port, keep = text.split(":")
        self.port, self.keep = int(port), keep == "1"
        self.times, self.error = [], None

    def ask(self, connection, n):
        kind = answers.KINDS[n % len(answers.KINDS)]
        begin = time.perf_counter()
        connection.request("GET", "/%s/%d" % (kind, n))
        response = connection.getresponse()
        body = response.read()
        self.times.append(time.perf_counter() - begin)
        if response.status != 200 or body != answers.expected(self.kind, kind, n):
            raise ValueError("/%s/%d: status %d, %r" % (kind, n, response.status, body))

    def run(self, numbers, at, rng):
        connection, begun = None, 0
        while not ended.wait(rng.uniform(0, THINK)):
            begun += 1
            NUMBERS.pack_into(numbers, at, begun, begun - 1)
            connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
            self.ask(connection, rng.randrange(7000))
            NUMBERS.pack_into(numbers, at, begun, begun)
            if not self.keep:
                connection = connection.close()
        if connection:
            connection.close()

    def client(self, numbers, at, rng):
        try:
            self.run(numbers, at, rng)
        except Exception as e:
            self.error = "%s server: %r" % (self.kind, e)

    def report(self):
        times, self.times = sorted(self.times), []
        at = [times[int(q * (len(times) - 1))] if times else None for q in (0.5, 0.99, 1)]
        return {"n": len(times), "p50": at[0], "p99": at[1], "max": at[2], "error": self.error}


def main():
    loads = [Load(text) for text in sys.argv[2:]]
    with open(sys.argv[1], "r+b") as f:
        f.truncate(NUMBERS.size * CLIENTS * len(loads))
        numbers = mmap.mmap(f.fileno(), 0)
    threads = [threading.Thread(target=loads[i // CLIENTS].client,
                                args=(numbers, NUMBERS.size * i, random.Random(i)))
               for i in range(CLIENTS * len(loads))]
    for thread in threads:
        thread.start()
    for _ in sys.stdin:
        print(json.dumps([load.report() for load in loads]), flush=True)
    ended.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
