#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A web server whose every answer is known: server.py gevent|asyncio [TAG]

Prints its port, ends when its stdin does. What it answers is in tests/targets/answers.py. TAG is
for the daemon's --match.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "targets"))
import answers  # noqa: E402


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


if __name__ == "__main__":
    servers = {"gevent": serve_gevent, "asyncio": serve_asyncio}
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in servers:
        sys.exit(__doc__)
    servers[sys.argv[1]]()
