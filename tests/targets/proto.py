# SPDX-License-Identifier: BSD-2-Clause
"""The protocol between targets and their observers. Python 3.6 and later, standard library only.

A target is started as `python run.py PROGRAM [options] [ARG...]` and exchanges lines:

    target   ready          warmed up; the time before this is not measured
    observer (any line)     e.g. after attaching
    target   result JSON    only if the program's main() returned something
    target   spans JSON     only if requested: see `spans`
    target   done
    observer (any line)     e.g. after the snapshot
    target   exits with status 0, at once: no shutdown code runs

Between `ready` and `done` the same Python functions run whether they are traced from outside or by
cProfile in the process (--cprofile). The comparison begins below two functions of this file,
`measured` (the main thread) and `thread_main` (threads started by run_threads); of this file, only
these two are compared, and of run.py none.
"""

import _thread
import os
import select
import time

_profile = None  # cProfile of the main thread while it is enabled
spans = None  # or a list: [tid, CPU seconds, wall seconds] of each measured() and thread_main()
builtins = False  # C functions are counted, too
_counts = {}  # (filename, firstlineno, name) -> [ncalls, pcalls]


def say(line):
    """Send one line to the observer. os.write: print() and sys.stdin run Python code in codecs."""
    os.write(1, (line + "\n").encode("utf-8"))


def wait():
    """Wait for one line from the observer; its end counts as one."""
    while True:
        byte = os.read(0, 1)
        if byte in (b"\n", b""):
            return byte


def told():
    """Whether the observer has sent a line, or closed its end; the line is then read.

    For programs that work until then: how long that takes depends on what the observer waits for.
    """
    return bool(select.select([0], [], [], 0)[0]) and wait() is not None


def read_line(fd=0):
    """Returns a command: the next line, or `stop` at the end of input."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(fd, 1)
        if not byte:
            return "stop"
        line += byte
    return line.decode("utf-8").strip()


def measured(main, args):
    return main(*args)


def timed(fn, args, before, after, clocks):
    """Each of the two reads both clocks in one call: after a call, another thread may run."""
    clocks.extend(before)
    try:
        return fn(*args)
    finally:
        clocks.extend(after)


def spanned(fn, *args):
    """Call fn, and record the kernel's clocks for it.

    Sleeps before and after: time stolen by a hypervisor is only reported when the thread leaves its CPU.
    """
    both = (time.CLOCK_THREAD_CPUTIME_ID, time.CLOCK_MONOTONIC)
    before, after = map(time.clock_gettime, both), map(time.clock_gettime, both)
    clocks = []
    time.sleep(0.001)
    try:
        return timed(fn, args, before, after, clocks)
    finally:
        tid = int(os.readlink("/proc/thread-self").rpartition("/")[2])
        spans.append([tid, clocks[2] - clocks[0], clocks[3] - clocks[1]])
        time.sleep(0.001)


def thread_main(body):
    body()


def counting(main, args):
    """Call measured() while sys.setprofile, before 3.12, counts calls.

    Returns do not affect it. cProfile on 3.11 loses track at a return without a call: of a
    coroutine into which an exception was thrown, and whose callee has caught it.
    """
    import sys
    calls = {}

    def on_event(frame, event, arg):
        if event == "call":
            code = frame.f_code
            key = (code.co_filename, code.co_firstlineno, code.co_name)
            calls[key] = calls.get(key, 0) + 1

    sys.setprofile(on_event)
    try:
        return measured(main, args)
    finally:
        sys.setprofile(None)
        for key, n in calls.items():
            _counts[key] = [n, n]


def monitored(main, args):
    """Call measured() while sys.monitoring (3.12+) counts calls only.

    cProfile also enables unwinding events, which since some release of 3.13 makes CPython run
    generators that are closed while suspended; without these events it does not.
    """
    import sys
    if sys.version_info < (3, 12):
        return counting(main, args)
    calls = {}
    lock = _thread.allocate_lock()  # without a GIL threads count at the same time

    def on_call(code, *_):
        # Not the code object itself: those of different files may be equal.
        key = (code.co_filename, code.co_firstlineno, code.co_name)
        with lock:
            calls[key] = calls.get(key, 0) + 1

    mon = sys.monitoring
    events = mon.events.PY_START | mon.events.PY_RESUME | mon.events.PY_THROW
    mon.use_tool_id(mon.PROFILER_ID, "pyprof")
    for event in (mon.events.PY_START, mon.events.PY_RESUME, mon.events.PY_THROW):
        mon.register_callback(mon.PROFILER_ID, event, on_call)
    mon.set_events(mon.PROFILER_ID, events)
    try:
        return measured(main, args)
    finally:
        mon.set_events(mon.PROFILER_ID, 0)
        mon.free_tool_id(mon.PROFILER_ID)
        for key, n in calls.items():
            _counts[key] = [n, n]


def region(main, args, profiled):
    """Call measured(), under cProfile or a counter of calls only if requested."""
    global _profile
    if profiled == "monitoring":
        return monitored(main, args)
    if not profiled:
        return measured(main, args) if spans is None else spanned(measured, main, args)
    import cProfile
    _profile = cProfile.Profile(builtins=builtins)
    _profile.enable()
    try:
        return measured(main, args)
    finally:
        _profile.disable()
        _add(_profile)
        _profile = None


def run_threads(bodies):
    """Run each body in a thread of its own and wait for all.

    With _thread and locks, because the code of threading.Thread depends on timing. Under cProfile
    the threads run one after another, each with its own profiler, while the main thread's is disabled:
    from 3.12 on a process has only one at a time. Counts do not depend on that.
    """
    if _profile is None:
        for lock in [_start(_thread_entry, body) for body in bodies]:
            lock.acquire()
        return
    _profile.disable()
    for body in bodies:
        _start(_thread_entry_profiled, body).acquire()
    _profile.enable()


def _start(entry, body):
    lock = _thread.allocate_lock()
    lock.acquire()
    _thread.start_new_thread(entry, (body, lock))
    return lock


def _thread_entry(body, lock):
    try:
        if spans is None:
            thread_main(body)
        else:
            spanned(thread_main, body)
    finally:
        lock.release()


def _thread_entry_profiled(body, lock):
    import cProfile
    profile = cProfile.Profile(builtins=builtins)
    try:
        profile.enable()
        try:
            thread_main(body)
        finally:
            profile.disable()
        _add(profile)
    finally:
        lock.release()


def _add_builtins(calls):
    """The C functions that a function called, as in pstats; without those called by this file."""
    for call in calls:
        if isinstance(call.code, str):
            counts = _counts.setdefault(("~", 0, call.code), [0, 0])
            counts[0] += call.callcount
            counts[1] += call.callcount


def _add(profile):
    for entry in profile.getstats():
        if isinstance(entry.code, str):  # a C function, per caller
            continue
        key = (entry.code.co_filename, entry.code.co_firstlineno, entry.code.co_name)
        if builtins and entry.code.co_filename != __file__:
            _add_builtins(entry.calls or ())
        counts = _counts.setdefault(key, [0, 0])
        counts[0] += entry.callcount
        counts[1] += entry.callcount - entry.reccallcount


def counts():
    """cProfile's counts: rows of filename, firstlineno, name, ncalls, pcalls."""
    return [list(key) + value for key, value in sorted(_counts.items())]
