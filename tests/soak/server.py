#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A web server whose every answer is known: server.py gevent|asyncio|threads|prefork [TAG]

Prints its port, ends when its stdin does. What it answers is in tests/targets/answers.py. TAG is
for the daemon's --match. threads: a thread for each connection; prefork: two worker processes, each of which
ends after some connections, and is replaced.
"""

import os
import select
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "targets"))
import answers  # noqa: E402

WORKERS = 2
CONNECTIONS = 100  # of a worker
TURN = 0.2         # seconds between two looks at the parent, or at the workers


def serve_gevent():
    from gevent.fileobject import FileObject
    from gevent.pywsgi import WSGIServer
    server = WSGIServer(("127.0.0.1", 0), answers.gevent_application, log=None)
    server.start()
    print(server.server_port, flush=True)
    FileObject(sys.stdin.buffer, "rb").read()
    server.stop(timeout=1)


async def asyncio_main():
    import asyncio
    server = await asyncio.start_server(answers.asyncio_connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


def serve_asyncio():
    import asyncio
    asyncio.run(asyncio_main())


def listen():
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", 0))
    server.listen(64)
    return server


def accept(server):
    """Returns the next connection; None: none in a while, or another worker was faster."""
    try:
        return server.accept()[0]
    except (socket.timeout, BlockingIOError):
        return None


def accept_for_threads(server):
    while True:
        threading.Thread(target=answers.blocking_connection, args=(server.accept()[0],),
                         daemon=True).start()


def serve_threads():
    server = listen()
    print(server.getsockname()[1], flush=True)
    threading.Thread(target=accept_for_threads, args=(server,), daemon=True).start()
    sys.stdin.read()


def work(server, parent):
    server.settimeout(TURN)
    left = CONNECTIONS
    while left and os.getppid() == parent:
        connection = accept(server)
        if connection:
            connection.settimeout(None)
            answers.blocking_connection(connection)
            left -= 1
    os._exit(0)


def start_worker(server):
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        work(server, parent)
    return pid


def serve_prefork():
    server = listen()
    print(server.getsockname()[1], flush=True)
    workers = {start_worker(server) for _ in range(WORKERS)}
    while not select.select([sys.stdin], [], [], TURN)[0]:
        for pid in list(workers):
            if os.waitpid(pid, os.WNOHANG)[0]:
                workers.remove(pid)
                workers.add(start_worker(server))


if __name__ == "__main__":
    servers = {"gevent": serve_gevent, "asyncio": serve_asyncio, "threads": serve_threads,
               "prefork": serve_prefork}
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in servers:
        sys.exit(__doc__)
    servers[sys.argv[1]]()
