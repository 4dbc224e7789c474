# SPDX-License-Identifier: BSD-2-Clause
"""A RecursionError that is caught: separate from mixed.py because on some versions its depth differs
between runs with and without a profiler. `run.py recursion_error` checks that the
target survives; compare only `shallow`."""

import sys


def down(n):
    return down(n + 1)


def shallow():
    return 1


def main():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        for _ in range(10):
            try:
                down(0)
            except RecursionError:
                shallow()
    finally:
        sys.setrecursionlimit(limit)
