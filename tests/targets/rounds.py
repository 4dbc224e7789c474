# SPDX-License-Identifier: BSD-2-Clause
"""Rounds of 40 short calls, all the time: rounds.py [LONGER]. Calls are LONGER times as long (1).

Prints `ready`; commands from stdin:

    fork     forks a child that does nothing: `child PID`
    rounds   `rounds N`: so far
    stop     or the end of stdin: ends, and so does the child
"""

import os
import select
import signal
import sys
import time

from proto import read_line, say


def leaf(n):
    total = 0
    for i in range(n):
        total += i
    return total


def handle(longer):
    for i in range(0, 40 * longer, longer):
        leaf(i)


def fork():
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        os.close(0)
        os.close(1)
        while os.getppid() == parent:
            time.sleep(0.1)
        os._exit(0)
    return pid


def main():
    rounds, children = 0, []
    longer = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    say("ready")
    while True:
        for _ in range(20):
            handle(longer)
            rounds += 1
        if not select.select([sys.stdin], [], [], 0)[0]:
            continue
        command = read_line()
        if command == "fork":
            children.append(fork())
            say("child %d" % children[-1])
        elif command == "rounds":
            say("rounds %d" % rounds)
        else:
            break
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
