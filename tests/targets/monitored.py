# SPDX-License-Identifier: BSD-2-Clause
"""Code that is out of date: sys.monitoring (3.12+) was used in the process, so each code object is
updated at its first call, and its first instruction is executed twice."""

import sys

WARM = 0
SOURCE = """
def plain_%(n)d():
    return 1

def generator_%(n)d():
    yield 1
    yield 2
"""


def use_monitoring():
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        return
    tool, events = 3, monitoring.events
    monitoring.use_tool_id(tool, "monitored")
    monitoring.register_callback(tool, events.PY_START, lambda *args: None)
    monitoring.set_events(tool, events.PY_START)
    (lambda: 0)()
    monitoring.set_events(tool, 0)
    monitoring.free_tool_id(tool)


def make(n):
    names = {}
    exec(SOURCE % {"n": n}, names)
    return names["plain_%d" % n], names["generator_%d" % n]


use_monitoring()
MADE = [make(n) for n in range(50)]


def main():
    for plain, generator in MADE:
        for _ in range(3):
            plain()
            list(generator())
