# SPDX-License-Identifier: BSD-2-Clause
"""Services as people write them, with Flask and with asyncio, and a client that loads them lightly.

    python walk_service.py flask            prints its port; serves until it is killed
    python walk_service.py asyncio          the same, with aiohttp
    python walk_service.py load PORT STOP   requests until the file STOP exists; then prints
                                            "requests N failed M"

Of the requests, one in 25 is slow: it takes more than 200 ms.
"""

import http.client
import json
import os
import sys
import threading
import time

CLIENTS = 3
PAUSE = 0.05
SLOW_EVERY = 25
SLOW = 0.25


def price(item):
    """The hottest function, by far, traced or not: it computes and calls nothing."""
    total = 0
    for i in range(2000):
        total += i * item % 7
    return total


def prices(number):
    return [{"item": i, "price": price(i)} for i in range(number % 10 + 1)]


def is_slow(number):
    return number % SLOW_EVERY == 0


def serve_flask():
    import flask
    from werkzeug.serving import make_server

    app = flask.Flask(__name__)

    @app.route("/prices/<int:number>")
    def handle_request(number):
        if is_slow(number):
            time.sleep(SLOW)
        return flask.jsonify(prices(number))

    server = make_server("127.0.0.1", 0, app, threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()


async def watch_stock(waiting):
    import asyncio

    while True:
        await asyncio.sleep(0.1)
        waiting.append(time.time())
        del waiting[:-100]


def serve_asyncio():
    import asyncio
    from aiohttp import web

    async def handle_request(request):
        number = int(request.match_info["number"])
        await asyncio.sleep(SLOW if is_slow(number) else 0.001)
        return web.json_response(prices(number))

    async def main():
        app = web.Application()
        app.router.add_get("/prices/{number}", handle_request)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
        await watch_stock([])

    asyncio.run(main())


def is_right(number, response, body):
    return response.status == 200 and len(json.loads(body.decode())) == number % 10 + 1


def client(port, stop, first, counts):
    number = first
    while not os.path.exists(stop):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            connection.request("GET", "/prices/%d" % number)
            response = connection.getresponse()
            right = is_right(number, response, response.read())
        except (OSError, ValueError, http.client.HTTPException) as e:
            print(repr(e), file=sys.stderr)
            right = False
        connection.close()
        counts.append(right)
        number += CLIENTS
        time.sleep(PAUSE)


def load(port, stop):
    counts = []
    threads = [threading.Thread(target=client, args=(int(port), stop, i, counts))
               for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("requests %d failed %d" % (len(counts), counts.count(False)))


if __name__ == "__main__":
    {"flask": serve_flask, "asyncio": serve_asyncio, "load": load}[sys.argv[1]](*sys.argv[2:])
