#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs by interpreters: in how many functions do the counts differ? As root: fidelity.py
[--program NAME]... [PYTHON...]

Runs every program of tests/targets (the servers on greenlets and asyncio, the shapes) on every
interpreter that matrix.py finds, and prints a line per program. 0: every function is called as often
as cProfile says, or as the program itself counts where cProfile cannot follow it. `0 m`: cProfile
makes things happen that it counts, and sys.monitoring, which was asked for calls only, agrees with
us. `-`: the interpreter lacks a module. Exits with 1 if a count is wrong.
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import matrix  # noqa: E402  (finds exact and compare)
import exact  # noqa: E402

SHAPES = ("deep", "exceptions", "asyncgen", "cancel", "callbacks", "codes", "names")
KNOWN = ("recursion_error", "gen_threads", "pthread_exit", "foreign", "subinterpreters", "waiting")
# name, arguments of run.py, who knows the counts, a module that it needs
PROGRAMS = [(n, [n], "cprofile", None) for n in ["mixed", "gen_close"] + matrix.STDLIB]
PROGRAMS += [("shapes " + k, ["shapes", k], "cprofile", None) for k in SHAPES]
PROGRAMS += [("shapes " + k, ["shapes_known", k], "itself", None) for k in KNOWN]
PROGRAMS += [("greenlet", ["greenlets", "plain"], "itself", "greenlet"),
             ("gevent", ["greenlets", "gevent"], "itself", "gevent")]


def lacks(python, args, module):
    need = module or ("_interpreters" if "subinterpreters" in args else None)
    if not need:
        return False
    names = [need, "_xxsubinterpreters"] if need == "_interpreters" else [need]
    return all(subprocess.call([python, "-c", "import " + n], stderr=subprocess.DEVNULL)
               for n in names)


class Traced(exact.Target):
    """Keeps what the program says of itself."""

    def expect(self, word):
        self.result = None
        for line in self.process.stdout:
            if line.startswith(b"result "):
                self.result = json.loads(line[7:].decode())
            if line.strip() == word:
                return
        raise SystemExit("the target ended before it said %r" % word)


def watched(observer, python, args, out):
    target = exact.Target(python, *(args + ["--" + observer, out]))
    target.expect(b"ready")
    target.go()
    target.expect(b"done")
    target.end()


def ours(python, args, out, socket):
    target = Traced(python, *args)
    target.expect(b"ready")
    env = dict(os.environ, PYPROFD_SOCKET=socket)
    daemon = subprocess.Popen([os.path.join(exact.BUILD, "pyprofd"), "--pid",
                               str(target.process.pid)], env=env)
    try:
        exact.wait_ready(daemon, env)
        target.go()
        target.expect(b"done")
        if exact.ctl(env, "snapshot", "-f", "json", "-o", out) != 0:
            raise SystemExit("pyprofctl snapshot failed")
        return target.result
    finally:
        daemon.terminate()
        daemon.wait()
        target.end()


def by_itself(result, out):
    with open(out) as f:
        doc = json.load(f)
    calls = {}
    for row in doc["functions"]:
        calls[row["name"]] = calls.get(row["name"], 0) + row["ncalls"]
    wrong = [name for name, n in result.items() if calls.get(name, 0) != n]
    return len(wrong) + (0 if doc["exact"] else 1)


def cell(python, args, who, module):
    """What to print, and whether it is right."""
    if lacks(python, args, module):
        return "-", True
    with tempfile.TemporaryDirectory() as tmp:
        out, theirs = os.path.join(tmp, "ours"), os.path.join(tmp, "theirs")
        result = ours(python, args, out, os.path.join(tmp, "socket"))
        if who == "itself":
            wrong = by_itself(result, out)
            return str(wrong), wrong == 0
        watched("cprofile", python, args, theirs)
        _, wrong, lost = matrix.differing(out, theirs)
        if wrong == 0 or lost:
            return str(wrong + lost), wrong + lost == 0
        watched("monitoring", python, args, theirs)
        wrong = matrix.differing(out, theirs, "--ncalls")[1]
        return "%d m" % wrong, wrong == 0


def main(argv):
    programs, pythons = [], []
    argv = argv[1:]
    while argv:
        word = argv.pop(0)
        if word == "--program" and argv:
            programs.append(argv.pop(0))
        else:
            pythons.append(word)
    pythons = pythons or [p for p in matrix.interpreters() if os.access(p, os.X_OK)]
    good = True
    print("| program | " + " | ".join(matrix.version_of(p) for p in pythons) + " |")
    print("|" + "---|" * (len(pythons) + 1), flush=True)
    for name, args, who, module in PROGRAMS:
        if programs and name not in programs:
            continue
        cells = []
        for python in pythons:
            text, right = cell(python, args, who, module)
            cells.append(text)
            good &= right
        print("| " + " | ".join([name] + cells) + " |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
