# SPDX-License-Identifier: BSD-2-Clause
"""50 calls of `down` deep when it prints `ready`: python deep.py

Attach then; after a line on stdin the stack unwinds, and each level calls `up` once on its way.
`done`, another line, exit. Runs without run.py: only its own functions are on the stack.
"""

import os
import select

DEPTH = 50


def wait():
    select.select([0], [], [])
    os.read(0, 4096)


def up(n):
    return n + 1


def down(n):
    if n == DEPTH:
        os.write(1, b"ready\n")
        wait()
        return 0
    return up(down(n + 1))


def main():
    assert down(1) == DEPTH - 1
    os.write(1, b"done\n")
    wait()
    os._exit(0)


main()
