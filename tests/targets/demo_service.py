# SPDX-License-Identifier: BSD-2-Clause
"""A small web service of the standard library to look at, and a client that keeps it busy.

    python demo_service.py serve [SECONDS]               prints its port; ends after SECONDS (120)
    python demo_service.py load PORT [SECONDS [FILE]]    four clients for SECONDS (5), then says how
                                                         many requests they made; so far: in FILE

Endpoints: /json, /page (a template), /query (sqlite3), /slow (sleeps), /cpu, /lock (contended).
"""

import hashlib
import http.client
import json
import os
import random
import re
import socketserver
import sqlite3
import string
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

ENDPOINTS = ("/json", "/page", "/query", "/slow", "/cpu", "/lock")
PAGE = string.Template("<html><h1>$title</h1><ul>$rows</ul></html>")
CLIENTS = 4


class Stock:
    """The data: one in-memory database, one connection per serving thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.local = threading.local()

    def connection(self):
        if not hasattr(self.local, "db"):
            self.local.db = db = sqlite3.connect(":memory:")
            db.execute("create table item (id integer primary key, name text, price real)")
            db.executemany("insert into item values (?, ?, ?)", map(make_item, range(500)))
        return self.local.db

    def cheapest(self, limit):
        rows = self.connection().execute(
            "select id, name, price from item order by price, id limit ?", (limit,))
        return [dict(zip(("id", "name", "price"), row)) for row in rows]

    def reserve(self):
        with self.lock:
            return checksum("reserved", rounds=60)


def make_item(i):
    return i, "item %d" % i, (i * 7919 % 1009) / 10


def checksum(text, rounds):
    digest = text.encode()
    for _ in range(rounds):
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


def render_row(item):
    name = re.sub(r"\d+", lambda m: "<b>%s</b>" % m.group(0), item["name"])
    return "<li>%s: %.2f</li>" % (name, item["price"])


def render_page(items):
    return PAGE.substitute(title="Stock", rows="".join(render_row(item) for item in items))


def primes(limit):
    found = []
    for n in range(2, limit):
        if is_prime(n, found):
            found.append(n)
    return found


def is_prime(n, smaller):
    for p in smaller:
        if p * p > n:
            return True
        if n % p == 0:
            return False
    return True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    stock = Stock()

    def do_GET(self):
        handler = getattr(self, "get_" + self.path.strip("/"), None)
        if handler is None:
            self.send_error(404)
            return
        body = handler().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def get_json(self):
        return json.dumps({"items": self.stock.cheapest(20)}, sort_keys=True)

    def get_page(self):
        return render_page(self.stock.cheapest(40))

    def get_query(self):
        total, = self.stock.connection().execute("select sum(price) from item").fetchone()
        return json.dumps({"total": total})

    def get_slow(self):
        time.sleep(0.02)
        return "slept"

    def get_cpu(self):
        return str(len(primes(1500)))

    def get_lock(self):
        return self.stock.reserve()

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True


def serve(seconds="120"):
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    stopper = threading.Timer(float(seconds), server.shutdown)
    stopper.daemon = True
    stopper.start()
    server.serve_forever(poll_interval=0.5)


def client(port, end, seed, counts):
    order = random.Random(seed)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while time.time() < end:
        connection.request("GET", order.choice(ENDPOINTS))
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise SystemExit("status %d" % response.status)
        counts[seed] += 1
    connection.close()


def load(port, seconds="5", path=os.devnull):
    counts = [0] * CLIENTS
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    end = time.time() + float(seconds)
    threads = [threading.Thread(target=client, args=(int(port), end, i, counts))
               for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        os.pwrite(fd, b"%9d" % sum(counts), 0)
        time.sleep(0.02)
    if time.time() < end:
        raise SystemExit("a client has failed")
    print("%d requests" % sum(counts))


if __name__ == "__main__":
    commands = {"serve": serve, "load": load}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
