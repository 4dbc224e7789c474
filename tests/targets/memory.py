# SPDX-License-Identifier: BSD-2-Clause
"""Functions that make the process grow and shrink: by small objects, by large ones, by a mapping.

main() returns the kernel's figures: [name, change of resident bytes in /proc/self/statm] of each; and
what the interpreter and the program know: the bytes of large blocks that keep_large() has left, and
the pools that grow_pools() has taken (sys._debugmallocstats()).
"""

import json
import mmap
import os
import re
import sys
import tempfile

WARM = 1
PAGE = mmap.PAGESIZE
SMALL, LARGE, MAPPED, KEPT, POOLED = 140000, 4, 16 << 20, 5 << 20, 60000

kept, leaked, held, pooled = [], [], [], []
runs = [0]


def resident():
    with open("/proc/self/statm", "rb") as f:
        return int(f.read().split()[1]) * PAGE


def pools():
    """Pools in use, and free ones."""
    with tempfile.TemporaryFile() as f:
        stderr = os.dup(2)
        os.dup2(f.fileno(), 2)
        sys._debugmallocstats()
        os.dup2(stderr, 2)
        os.close(stderr)
        f.seek(0)
        text = f.read().decode()
    used = re.findall(r"^ *\d+ +\d+ +(\d+) +\d+ +\d+$", text, re.M)
    return sum(int(n) for n in used), int(re.search(r"^(\d+) unused pools", text, re.M).group(1))


def grow_small():
    for i in range(SMALL):
        kept.append([i, i + 1])


def grow_large():
    """malloc maps blocks that are larger than all that were freed before, as in the last run."""
    for _ in range(LARGE):
        kept.append(bytearray(runs[0] << 21))


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


def keep_large(size):
    for _ in range(3):
        held.append(bytearray(size))


def take_large(size):
    return bytearray(size)


def drop_large(taken):
    taken.pop()


def use_free_pools():
    """Until an arena is mapped: from then on, pools come from arenas mapped while this is traced."""
    free = pools()[1]
    while True:
        for _ in range(20):
            pooled.append(bytes(450))
        now = pools()[1]
        if now > free:
            return
        free = now


def grow_pools():
    for _ in range(POOLED):
        pooled.append(bytes(450))


def blocks():
    """Not in the first run, for the same reason."""
    before = resident()
    keep_large(KEPT)
    change = resident() - before
    drop_large([take_large(2 * KEPT)])
    return change


def main():
    m = mmap.mmap(-1, MAPPED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    del pooled[:]
    runs[0] += 1
    result = []
    for function, args in ((grow_small, ()), (grow_large, ()), (shrink, ()), (leak, ()),
                           (grow_huge, (m,)), (drop_huge, (m,))):
        before = resident()
        function(*args)
        result.append([function.__name__, resident() - before])
    if runs[0] > WARM:
        result.append(["keep_large", blocks()])
    use_free_pools()
    before = pools()[0]
    grow_pools()
    known = {"live": 3 * KEPT, "pools": pools()[0] - before}
    del leaked[:]
    return json.dumps([result, known])
