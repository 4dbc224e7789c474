# SPDX-License-Identifier: BSD-2-Clause
"""One function, called until CPython's JIT, if enabled, has compiled it and its caller."""

WARM = 1
CALLS = 30000


def hot(n):
    return n + 1


def main():
    n = 0
    for _ in range(CALLS):
        n = hot(n)
    if n != CALLS:
        raise SystemExit("counted wrong")
