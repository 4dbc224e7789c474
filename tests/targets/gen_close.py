# SPDX-License-Identifier: BSD-2-Clause
"""Suspended generators closed where no `try` encloses the yield. Separate from mixed.py: since some
release of 3.13, CPython then runs nothing unless a profiler is active: cProfile counts one call more
than a run without a profiler makes."""


def count(n):
    for i in range(n):
        yield i


def closed():
    gen = count(3)
    next(gen)
    gen.close()


def abandoned():
    gen = count(3)
    next(gen)


def first():
    return next(x for x in count(5) if x > 1)


def main():
    for _ in range(50):
        closed()
        abandoned()
        first()
