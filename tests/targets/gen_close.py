# SPDX-License-Identifier: BSD-2-Clause
"""Suspended generators closed where no `try` encloses the yield. Kept apart from mixed.py: from some
3.13 on, CPython runs nothing then, unless a profiler is on: cProfile counts one call more than an
unwatched run makes."""


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
