# SPDX-License-Identifier: BSD-2-Clause
"""Runs another target while the process uses something that may hide calls from an observer.

Environment: HIDE_PROGRAM is that target; HIDE is what may hide calls (empty: nothing, for the counts
to compare with); HIDE_WHEN: it is enabled before the observer comes ("before"), or enabled and
disabled meanwhile ("during"). It is written in C and makes no calls of Python functions.
"""

import importlib
import itertools
import os
import sys

WAY = os.environ.get("HIDE", "")
program = importlib.import_module(os.environ["HIDE_PROGRAM"])
BEFORE = os.environ.get("HIDE_WHEN") == "before"
ROUNDS = {"stdlib_statistics": (2,)}.get(program.__name__, ())
WARM = 1


def monitoring():
    mon = sys.monitoring
    every = 0
    mon.use_tool_id(5, "pyprof")
    for name in dir(mon.events):
        event = getattr(mon.events, name)
        if isinstance(event, int) and event and not event & (event - 1):
            every |= event
            mon.register_callback(5, event, itertools.chain)
    return (mon.set_events, 5, every), (mon.set_events, 5, 0)


def evaluator():
    """PEP 523, by a library (HIDE_LIBRARY) that passes on every frame."""
    import ctypes
    api, address = ctypes.pythonapi, ctypes.c_void_p
    library = ctypes.CDLL(os.environ["HIDE_LIBRARY"])
    own = ctypes.cast(library.evaluate, address)
    default = ctypes.cast(api._PyEval_EvalFrameDefault, address)
    address.in_dll(library, "evaluator").value = default.value
    api.PyInterpreterState_Head.restype = address
    interpreter = address(api.PyInterpreterState_Head())
    if hasattr(api, "_PyInterpreterState_SetEvalFrameFunc"):  # 3.9 and later
        install = api._PyInterpreterState_SetEvalFrameFunc
        return (install, interpreter, own), (install, interpreter, default)
    field = address.from_address(interpreter.value + int(os.environ["HIDE_OFFSET"]))
    return (setattr, field, "value", own.value), (setattr, field, "value", default.value)


def nothing():
    return (len, ()), (len, ())


# A callable written in C with its arguments: to enable it, to disable it.
ON, OFF = {
    "": nothing,
    "setprofile": lambda: ((sys.setprofile, getattr), (sys.setprofile, None)),
    "settrace": lambda: ((sys.settrace, getattr), (sys.settrace, None)),
    "monitoring": monitoring,
    "evaluator": evaluator,
}[WAY]()


def main():
    if not BEFORE:
        ON[0](*ON[1:])
    program.main(*ROUNDS)
    if not BEFORE:
        OFF[0](*OFF[1:])
    program.main(*ROUNDS)


if BEFORE:
    ON[0](*ON[1:])
