# SPDX-License-Identifier: BSD-2-Clause
"""Functions that use known amounts of the resources the kernel counts for each thread.

main() returns the kernel's own figures for each of them: resource.getrusage(RUSAGE_THREAD) and
/proc/thread-self/io, read immediately before and after the call, as {function: {counter: amount}}.
"""

import json
import mmap
import os
import resource
import time

WARM = 1
PAGE = mmap.PAGESIZE
READS, READ_SIZE = 37, 10000
WRITES, WRITE_SIZE = 23, 3000
PAGES = 500
SLEEPS = 25


def read_bytes(fd):
    for _ in range(READS):
        os.pread(fd, READ_SIZE, 0)


def write_bytes(fd):
    for _ in range(WRITES):
        os.pwrite(fd, b"x" * WRITE_SIZE, 0)


def touch_pages():
    # No huge pages, so that each page causes a fault.
    m = mmap.mmap(-1, PAGES * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(m, "madvise"):
        m.madvise(15)  # MADV_NOHUGEPAGE
    for i in range(PAGES):
        m[i * PAGE] = 1
    m.close()


def sleep_often():
    for _ in range(SLEEPS):
        time.sleep(0.001)


def nested(depth, fd):
    """Recursion: its own share is at the bottom only; its callees' share counts once."""
    if depth:
        nested(depth - 1, fd)
    else:
        read_bytes(fd)


def usage():
    r = resource.getrusage(resource.RUSAGE_THREAD)
    with open("/proc/thread-self/io") as f:
        io = dict(line.split(": ") for line in f.read().splitlines())
    return {"vcsw": r.ru_nvcsw, "ivcsw": r.ru_nivcsw, "minflt": r.ru_minflt,
            "majflt": r.ru_majflt, "rbytes": int(io["rchar"]), "wbytes": int(io["wchar"])}


def measure(function, *args):
    before = usage()
    function(*args)
    after = usage()
    return {name: after[name] - before[name] for name in before}


def main():
    fd = os.memfd_create("resources") if hasattr(os, "memfd_create") else os.open(
        "/tmp", os.O_TMPFILE | os.O_RDWR)
    os.write(fd, bytes(READ_SIZE))
    result = {
        "read_bytes": measure(read_bytes, fd),
        "write_bytes": measure(write_bytes, fd),
        "touch_pages": measure(touch_pages),
        "sleep_often": measure(sleep_often),
        "nested": measure(nested, 5, fd),
    }
    os.close(fd)
    return json.dumps(result)
