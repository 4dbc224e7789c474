# SPDX-License-Identifier: BSD-2-Clause
"""Maps pages of a file over memory that a debugger reads, on request.

The file is on a FUSE file system. It covers the top of the main thread's stack: its arguments, its
environment, the random bytes of its start. The main thread waits forever; another one works.
"""
import ctypes
import os
import signal
import struct
import sys
import threading
import time

PAGE = 4096
AT_RANDOM = 25
SYS_PAUSE = 34  # of x86-64


def random_bytes():
    with open("/proc/self/auxv", "rb") as f:
        data = f.read()
    for key, value in struct.iter_unpack("QQ", data):
        if key == AT_RANDOM:
            return value


def stack_end():
    with open("/proc/self/maps") as f:
        for line in f:
            if line.rstrip().endswith("[stack]"):
                return int(line.split()[0].split("-")[1], 16)


def cover(path):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                          ctypes.c_int, ctypes.c_long]
    start = random_bytes() & ~(PAGE - 1)
    fd = os.open(path, os.O_RDONLY)
    # PROT_READ, MAP_PRIVATE | MAP_FIXED
    got = libc.mmap(start, stack_end() - start, 1, 2 | 16, fd, 0)
    return got == start


def wait_for_pause():
    """Waits until the main thread is in pause(2), where it does not use its stack."""
    while True:
        with open("/proc/self/task/%d/syscall" % os.getpid()) as f:
            if f.read().split()[0] == str(SYS_PAUSE):
                return
        time.sleep(0.01)


def work(path):
    wait_for_pause()
    os.write(1, b"ready\n")
    sys.stdin.readline()
    os.write(1, b"covered\n" if cover(path) else b"failed\n")
    n = 0
    while True:
        n = step(n)


def step(n):
    return n + 1 & 0xffff


worker = threading.Thread(target=work, args=(sys.argv[1],))
worker.start()
signal.pause()
