# SPDX-License-Identifier: BSD-2-Clause
"""DEPTH functions, each with a name of LENGTH characters, that call each other in turn:
python long_names.py [DEPTH [LENGTH [RECURSION [ROUNDS]]]]

`ready`; after a line on stdin each is called CALLS times, and `recurse` RECURSION times by itself,
ROUNDS times over; `done`, another line, exit.
"""

import os
import select
import sys

DEPTH = int(sys.argv[1]) if len(sys.argv) > 1 else 400
LENGTH = int(sys.argv[2]) if len(sys.argv) > 2 else 48000
RECURSION = int(sys.argv[3]) if len(sys.argv) > 3 else 0
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 1
CALLS = 20


def wait():
    select.select([0], [], [])
    os.read(0, 4096)


def chain():
    following = None
    for i in reversed(range(DEPTH)):
        name = "f%d_" % i
        name += "x" * (LENGTH - len(name))
        source = "def %s():\n    sum(range(50))\n    if following: following()\n" % name
        scope = {"following": following}
        exec(compile(source, "/srv/long_names_%d.py" % i, "exec"), scope)
        following = scope[name]
    return following


def recurse(n):
    sum(range(50))
    if n:
        recurse(n - 1)


def main():
    sys.setrecursionlimit(DEPTH + RECURSION + 100)
    first = chain()
    os.write(1, b"ready\n")
    wait()
    for _ in range(CALLS):
        first()
    for _ in range(ROUNDS if RECURSION else 0):
        recurse(RECURSION)
    os.write(1, b"done\n")
    wait()
    os._exit(0)


main()
