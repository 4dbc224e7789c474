# SPDX-License-Identifier: BSD-2-Clause
"""Works, and executes another program on request, while a file of a FUSE file system is open.

The kernel closes that file in the middle of the exec. If its server does not respond, the exec is
not completed.
"""
import os
import sys
import threading

stop = False


def step(n):
    return n + 1 & 0xffff


def work():
    n = 0
    while not stop:
        n = step(n)


worker = threading.Thread(target=work)
worker.start()
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_CLOEXEC)
os.write(1, b"ready\n")
sys.stdin.readline()
stop = True
worker.join()
os.execv("/bin/sleep", ["sleep", "60"])
