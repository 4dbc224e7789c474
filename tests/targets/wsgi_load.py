# SPDX-License-Identifier: BSD-2-Clause
"""Sends REQUESTS requests to wsgi_app.py from CLIENTS clients: wsgi_load.py SOCKET REQUESTS CLIENTS

Prints `answered N workers M`: the number of right responses, and of processes that sent them.
"""

import http.client
import json
import socket
import sys
import threading

PAGES = ("index", "orders", "users")


class Client(http.client.HTTPConnection):
    def __init__(self, path):
        http.client.HTTPConnection.__init__(self, "localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def right(page, number, answer, body):
    rows = json.loads(body.decode())["rows"]
    return (answer.status == 200 and len(rows) == 5
            and all(row["sum"] == number + i for i, row in enumerate(rows)))


def ask(path, numbers, workers, answered):
    for number in numbers:
        page = PAGES[number % 3]
        client = Client(path)
        client.request("GET", "/%s?%d" % ("" if page == "index" else page, number))
        answer = client.getresponse()
        if right(page, number, answer, answer.read()):
            answered.append(number)
        workers.add(answer.getheader("X-Worker"))
        client.close()


def main():
    path, requests, clients = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    workers, answered = set(), []
    threads = [threading.Thread(target=ask, args=(path, range(i, requests, clients), workers,
                                                  answered)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("answered %d workers %d" % (len(set(answered)), len(workers)))


main()
