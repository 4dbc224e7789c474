# SPDX-License-Identifier: BSD-2-Clause
"""A WSGI application whose calls are known: each request calls handle() once, and that render()."""

import json
import os

ROUTES = {"/": "index", "/orders": "orders", "/users": "users"}


def render(name, number):
    rows = [{"name": name, "row": i, "sum": number + i} for i in range(5)]
    return json.dumps({"page": name, "rows": rows}).encode()


def handle(environ):
    name = ROUTES.get(environ["PATH_INFO"])
    if name is None:
        return "404 Not Found", b"{}"
    return "200 OK", render(name, int(environ["QUERY_STRING"] or 0))


def app(environ, start_response):
    status, body = handle(environ)
    start_response(status, [("Content-Type", "application/json"),
                            ("X-Worker", str(os.getpid())),
                            ("Content-Length", str(len(body)))])
    return [body]
