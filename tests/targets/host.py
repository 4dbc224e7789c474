# SPDX-License-Identifier: BSD-2-Clause
"""A known number of calls, for a program that embeds Python; see tests/hosts.py."""
import os
import time

CALLS = 20000
twice = lambda x: 2 * x


def once(x):
    return x


def work():
    out = []
    add = out.append
    for i in range(CALLS):
        once(i)
        twice(i)
        len(out)
        add(i)
    sorted(out)


def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.02)


def main():
    with open("/tmp/ready.new", "w") as out:
        out.write(str(os.getpid()))
    os.rename("/tmp/ready.new", "/tmp/ready")
    wait_for("/tmp/go")
    work()
    open("/tmp/done", "w").close()
    wait_for("/tmp/end")
    os._exit(0)


main()
