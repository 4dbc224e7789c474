# SPDX-License-Identifier: BSD-2-Clause
"""Calls in two sub-interpreters, each in two threads (before 3.8: four, one thread each): CALLS of
sub_leaf in each thread, and as many of main_leaf in the main interpreter."""

WARM = 0
kept = []  # an interpreter ends with the last reference to it
CALLS = 500
SCRIPT = """
import _thread, time
def sub_leaf(n): return n
def sub_rec(n): return sub_rec(n - 1) if n else 0
def sub_gen(n):
    for i in range(n): yield i
ran = []
def sub_work():
    for i in range(%d): sub_leaf(i)
    sub_rec(9)
    for i in sub_gen(9): pass
    ran.append(1)
sub_work()
if %d:
    # counted from its own beginning on, until its function has returned
    _thread.start_new_thread(sub_work, ())
    while len(ran) < 2 or _thread._count(): time.sleep(0.001)
"""


def main_leaf(n):
    return n


def run():
    """Run in an interpreter that remains, so that it is visible; creating one depends on the version."""
    try:
        import _interpreters as sub
        kept.append(sub.create())
        sub.exec(kept[-1], SCRIPT % (CALLS, 1))
    except ImportError:
        try:
            import _xxsubinterpreters as sub
            try:
                kept.append(sub.create(isolated=False))
            except TypeError:  # 3.8
                kept.append(sub.create())
            sub.run_string(kept[-1], SCRIPT % (CALLS, 1))
        except ImportError:  # it does not remain, and must have no threads at its end
            import _testcapi
            for _ in range(2):
                _testcapi.run_in_subinterp(SCRIPT % (CALLS, 0))


def main():
    run()
    for i in range(CALLS):
        main_leaf(i)
    run()
    return str(CALLS)
