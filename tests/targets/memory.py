# SPDX-License-Identifier: BSD-2-Clause
"""Functions that make the process grow and shrink: by small objects, by large ones, by a mapping.

main() returns the kernel's figures: [name, change of resident bytes in /proc/self/statm] of each.
"""

import json
import mmap

WARM = 1
PAGE = mmap.PAGESIZE
SMALL, LARGE, MAPPED = 60000, 8, 16 << 20

kept, leaked = [], []


def resident():
    with open("/proc/self/statm", "rb") as f:
        return int(f.read().split()[1]) * PAGE


def grow_small():
    for i in range(SMALL):
        kept.append([i, i + 1])


def grow_large():
    for _ in range(LARGE):
        kept.append(bytearray(1 << 20))


def shrink():
    del kept[:]


def leak():
    for i in range(SMALL // 2):
        leaked.append({i: i})


def grow_huge(m):
    if hasattr(m, "madvise"):
        m.madvise(14)  # MADV_HUGEPAGE
    for i in range(0, MAPPED, PAGE):
        m[i] = 1


def drop_huge(m):
    m.close()


def main():
    m = mmap.mmap(-1, MAPPED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    result = []
    for function, args in ((grow_small, ()), (grow_large, ()), (shrink, ()), (leak, ()),
                           (grow_huge, (m,)), (drop_huge, (m,))):
        before = resident()
        function(*args)
        result.append([function.__name__, resident() - before])
    del leaked[:]
    return json.dumps(result)
