#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How many times slower than a usual machine this one is: one number, at least 1, for limits of the tests.

It is the largest of three ratios, each the best of a few tries, because neighbours disturb:

  hit    of an empty probe, by a counting uprobe event on a loop of this process. Usual: 0.45 us in a virtual
         machine; 3.4 us where the hypervisor handles traps in software (packaging/doc/overhead.md).
  fork   of this process, its exit and its reaping, in CPU time. Usual: 0.8 ms.
  steal  the share of CPU time that the hypervisor gave to others, since boot; 1 / (1 - share).

Where the kernel refuses the probe, a system call stands for it (usual: 0.17 us).
"""
import ctypes
import mmap
import os
import struct
import sys
import tempfile
import time

HIT_US, FORK_MS, CALL_US = 0.45, 0.8, 0.17
MOST = 20
PERF_EVENT_OPEN = 298  # x86-64


def best(measure, tries=5):
    return min(measure() for _ in range(tries))


def call_us():
    begun = time.process_time()
    for _ in range(5000):
        os.getppid()
    return (time.process_time() - begun) / 5000 * 1e6


def fork_ms():
    begun = sum(os.times()[:4])
    for _ in range(50):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    return (sum(os.times()[:4]) - begun) / 50 * 1e3


def hit_us():
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/sys/bus/event_source/devices/uprobe/type", encoding="utf-8") as f:
        kind = int(f.read())
    with tempfile.NamedTemporaryFile() as f:
        # The kernel emulates a push, as it does the instructions that pyprofd's probes are placed on.
        f.write(b"\x55\x5d\xc3".ljust(4096, b"\xcc"))  # push %rbp; pop %rbp; ret
        f.flush()
        # Not by the module mmap: its address is only given of a writable one, which uprobes leave alone.
        libc.mmap.restype = ctypes.c_void_p
        place = libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE,
                          f.fileno(), ctypes.c_long(0))
        function = ctypes.CFUNCTYPE(None)(place)
        path = ctypes.create_string_buffer(f.name.encode())
        # struct perf_event_attr, include/uapi/linux/perf_event.h: type, size, ..., config1 (path), config2 (offset)
        attr = struct.pack("IIQQQQQIIQQ", kind, 72, 0, 0, 0, 0, 0, 0, 0, ctypes.addressof(path), 0)

        def loop():
            begun = time.process_time()
            for _ in range(3000):
                function()
            return (time.process_time() - begun) / 3000 * 1e6

        bare = best(loop)
        fd = libc.syscall(PERF_EVENT_OPEN, attr, 0, -1, -1, 8)  # PERF_FLAG_FD_CLOEXEC
        if fd < 0:
            raise OSError(ctypes.get_errno(), "perf_event_open")
        hit = best(loop) - bare
        os.close(fd)
        return hit


def stolen():
    with open("/proc/stat", encoding="utf-8") as f:
        ticks = [int(x) for x in f.readline().split()[1:9]]
    return ticks[7] / max(1, sum(ticks))


def main():
    fork, steal = best(fork_ms), stolen()
    try:
        hit = hit_us()
        trap, text = hit / HIT_US, "hit %.2f us" % hit
    except (OSError, ValueError) as e:
        call = best(call_us)
        trap, text = call / CALL_US, "system call %.2f us (no probe: %s)" % (call, e)
    factor = min(MOST, max(1, trap, fork / FORK_MS, 1 / (1 - min(steal, 0.95))))
    print("%s, fork %.2f ms, steal %.1f %%: patience %.1f" % (text, fork, 100 * steal, factor), file=sys.stderr)
    print("%.2f" % factor)


if __name__ == "__main__":
    main()
