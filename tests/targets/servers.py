# SPDX-License-Identifier: BSD-2-Clause
"""A web server under load: run.py servers gevent|asyncio

Another process, `servers.py KIND`, requests all of answers.py over loopback, several at
once, and compares every response with the expected one. When all have been answered, the number of
calls of each function of answers.py is known: the result. For asyncio, cProfile has the same counts,
except for calls by the event loop that depend on timing: compare.py --event-loop.
"""

import asyncio
import collections
import http.client
import json
import os
import socket
import subprocess
import sys
import threading

import answers

WARM = 1
CLIENTS = 4
ROUNDS = 6  # of each kind, by each client
DEADLINE = 120  # seconds, for one answer

# The load: another process --------------------------------------------------------------------


def requests(client):
    return [(kind, (client * 211 + i * 37) % 1000) for i in range(ROUNDS) for kind in answers.KINDS]


def ask(server, port, client, right):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    for kind, n in requests(client):
        connection.request("GET", "/%s/%d" % (kind, n))
        response = connection.getresponse()
        if response.read() == answers.expected(server, kind, n) and response.status == 200:
            right.append((kind, n))
    connection.close()


def load(server):
    """For each port that it receives: send the requests, report the number of right responses."""
    for port in sys.stdin:
        right = []
        threads = [threading.Thread(target=ask, args=(server, int(port), i, right))
                   for i in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.write(1, b"%d\n" % len(right))  # in one piece


# Expected calls per request ---------------------------------------------------------------------


def computed(n):
    return collections.Counter(compute=1, mix=40 + n % 60)


def fanned_out(n):
    return sum((computed(n + i) for i in range(answers.CHILDREN)), collections.Counter())


def recursed(n):
    return computed(n) + collections.Counter(recurse=61, mix=60)


def failed(n):
    return computed(n) + collections.Counter(fail=1, raise_deep=21)


def generated(n):
    """The common part of both ways of generating: 30 numbers, with more work for some of them."""
    chosen = sum(1 for x in answers.numbers(n) if x % 3)
    return collections.Counter(numbers=31, mix=30 + chosen), chosen


def of_gevent(kind, n):
    calls, chosen = generated(n)
    genexpr = {"<genexpr>": chosen + 1}
    return {
        "compute": computed(n), "recurse": recursed(n), "fail": failed(n),
        "generate": calls + collections.Counter(genexpr, generate=1),
        "nap": computed(n) + collections.Counter(gevent_nap=1),
        "timeout": computed(n) + collections.Counter(gevent_timeout=1),
        "fan": fanned_out(n) + collections.Counter({"<genexpr>": answers.CHILDREN + 1}, children=1,
                                                   gevent_fan=1, gevent_nap=answers.CHILDREN),
    }[kind] + collections.Counter(gevent_application=1, parse=1, answer=1)


def suspended(kind, n):
    """How often an asyncio handler and its awaiting callers are suspended. Each resumption is a call."""
    if kind == "generate":
        return sum(1 for x in answers.numbers(n) if x % 8 == 0)
    if kind == "timeout":  # these wait_for()s wait once more, for the cancellation
        return 2 if (3, 7) <= sys.version_info < (3, 12) else 1
    return 1 if kind in ("nap", "fan") else 0


def of_asyncio(kind, n):
    calls = generated(n)[0]
    turns = suspended(kind, n)
    # Before each request the connection waits once: the client sends none before the last response.
    return {
        "compute": computed(n), "recurse": recursed(n), "fail": failed(n),
        "generate": calls + collections.Counter(asyncio_generate=1 + turns,
                                                asyncio_numbers=31 + turns),
        "nap": computed(n) + collections.Counter(asyncio_nap=1 + turns),
        "timeout": computed(n) + collections.Counter(asyncio_timeout=1 + turns),
        "fan": fanned_out(n) + collections.Counter(children=1, asyncio_fan=1 + turns,
                                                   asyncio_nap=2 * answers.CHILDREN),
    }[kind] + collections.Counter(parse=1, answer=1, asyncio_connection=1 + turns)


def connected():
    """Calls of a connection without a request: it begins, and wakes up once more when it ends."""
    return collections.Counter(asyncio_connection=2)


def expected_calls(server):
    total = collections.Counter()
    for client in range(CLIENTS):
        for kind, n in requests(client):
            total += of_gevent(kind, n) if server == "gevent" else of_asyncio(kind, n)
        total += connected() if server == "asyncio" else collections.Counter()
    return json.dumps({"answers.py:" + name: n for name, n in sorted(total.items())})


# The servers ------------------------------------------------------------------------------------


def serve_gevent(client):
    from gevent.pywsgi import WSGIServer
    from gevent.socket import wait_read
    server = WSGIServer(("127.0.0.1", 0), answers.gevent_application, log=None)
    server.start()
    client.send_port(server.server_port)
    wait_read(client.answered)
    server.stop(timeout=1)


async def asyncio_server(client):
    ended = asyncio.get_event_loop().create_future()
    left = [CLIENTS]

    async def connection(reader, writer):
        await answers.asyncio_connection(reader, writer)
        left[0] -= 1
        if not left[0]:
            ended.set_result(None)

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = await asyncio.start_server(connection, sock=listening)
    client.send_port(listening.getsockname()[1])
    await ended
    server.close()


def serve_asyncio(client):
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(asyncio_server(client))
    finally:
        loop.close()


class Client:
    """The other process, which is started before the measured region."""

    def __init__(self, server):
        # An interpreter that needs a launcher sets a variable: see run.py.
        python = os.environ.get("PYPROF_LAUNCHER", sys.executable)
        self.process = subprocess.Popen([python, os.path.abspath(__file__), server],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port, self.answered = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.calls = expected_calls(server)

    def send_port(self, port):
        os.write(self.port, b"%d\n" % port)

    def check(self):
        if int(os.read(self.answered, 100) or 0) != CLIENTS * ROUNDS * len(answers.KINDS):
            raise SystemExit("not all requests were answered right")


clients = {}


def main(server):
    if server not in clients:
        clients[server] = Client(server)
    client = clients[server]
    {"gevent": serve_gevent, "asyncio": serve_asyncio}[server](client)
    client.check()
    return client.calls


if __name__ == "__main__":
    load(sys.argv[1])
