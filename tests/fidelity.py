#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs by interpreters: in how many functions do the counts differ? As root: fidelity.py
[--program NAME]... [--keep FILE] [--seconds N] [PYTHON...]

Runs every program of tests/targets (greenlets, servers under load, stacks of all shapes) on every
interpreter that matrix.py finds, and prints a line per program. 0: every function is called as
often as cProfile counts, or as the program itself counts if cProfile cannot follow it, or both.
`0 m`: cProfile causes calls that it counts, and sys.monitoring with call events only
agrees with pyprofd. `-`: the interpreter lacks a module.

Each run's times must add up within 0.1 %: rows to their thread's total, on both clocks, with the
probes' own time and without it; and the threads' time to the kernel's clocks (or within
SLACK_NS, as reading clocks takes time). Time that a busy host takes from a virtual machine is not
always reported, so a run is repeated, at most twice, if only the clocks disagree. The last lines
show the largest deviations. Exits with 1 if a count or a sum is wrong.

With --keep completed runs are stored in FILE and not repeated; --seconds stops after this time,
with status 75 if there is more to do: call it again until the table is complete.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import matrix  # noqa: E402  (finds the modules of targets/)
import addup  # noqa: E402
import exact  # noqa: E402

SHAPES = ("deep", "exceptions", "asyncgen", "cancel", "callbacks", "codes", "names")
KNOWN = ("recursion_error", "gen_threads", "pthread_exit", "foreign", "subinterpreters", "waiting")
# name, arguments of run.py, source of the counts, a required module
PROGRAMS = [(n, [n], "cprofile", None) for n in ["mixed", "gen_close"] + matrix.STDLIB]
PROGRAMS += [("shapes " + k, ["shapes", k], "cprofile", "ctypes") for k in SHAPES]
PROGRAMS += [("shapes " + k, ["shapes_known", k], "itself", "ctypes") for k in KNOWN]
PROGRAMS += [("greenlet", ["greenlets", "plain"], "itself", "greenlet"),
             ("gevent", ["greenlets", "gevent"], "itself", "gevent"),
             ("gevent server", ["servers", "gevent"], "itself", "gevent"),
             ("asyncio server", ["servers", "asyncio"], "both", None)]

SHARE = 1e-3
SLACK_NS = 100000
LONG_NS = SLACK_NS / SHARE  # deviations of shorter times are printed in us, not as a share
AGAIN = 75
ATTEMPTS = 3  # a busy host takes CPU time from a thread without reporting it: see timing.c


def lacks(python, args, module):
    if module and subprocess.call([python, "-c", "import " + module], stderr=subprocess.DEVNULL):
        return True
    need = "_interpreters" if "subinterpreters" in args else None
    if not need:
        return False
    names = [need, "_xxsubinterpreters"]
    return all(subprocess.call([python, "-c", "import " + n], stderr=subprocess.DEVNULL)
               for n in names)


def cpu_of(pid):
    """The CPU time of another process, in seconds: clock_getcpuclockid(3), CPUCLOCK_SCHED."""
    return time.clock_gettime(~pid << 3 | 2)


class Traced(exact.Target):
    """Keeps the lines that the program prints."""

    def __init__(self, python, *args):
        super().__init__(python, *args)
        self.reported = {}

    def expect(self, word):
        for line in self.process.stdout:
            key, _, value = line.partition(b" ")
            if value:
                self.reported[key.decode()] = json.loads(value.decode())
            if line.strip() == word:
                return
        raise SystemExit("the target ended before it said %r" % word)

    def cpu(self):
        """Call it when the program waits for a line: a running thread has no exact account."""
        deadline = time.time() + exact.READY_SECONDS
        while True:
            with open("/proc/%d/stat" % self.process.pid) as f:
                if f.read().rpartition(")")[2].split()[0] == "S":
                    return cpu_of(self.process.pid)
            if time.time() > deadline:
                raise SystemExit("the target does not wait")
            time.sleep(0.001)


def watched(observer, python, args, out):
    target = exact.Target(python, *(args + ["--" + observer, out]))
    target.expect(b"ready")
    target.go()
    target.expect(b"done")
    target.end()


def snapshot(env, out, *options):
    if exact.ctl(env, "snapshot", "-f", "json", "-o", out, *options) != 0:
        raise SystemExit("pyprofctl snapshot failed")


def ours(python, args, out, raw, socket):
    """The program's result, and the CPU time that it used meanwhile."""
    target = Traced(python, *(args + ["--spans"]))
    target.expect(b"ready")
    env = dict(os.environ, PYPROFD_SOCKET=socket)
    daemon = subprocess.Popen([os.path.join(exact.BUILD, "pyprofd"), "--exact", "--yes", "--pid",
                               str(target.process.pid)], env=env)
    try:
        exact.wait_ready(daemon, env)
        before = target.cpu()
        target.go()
        target.expect(b"done")
        cpu = target.cpu() - before
        snapshot(env, out)
        snapshot(env, raw, "--raw-times")
        return target.reported, cpu
    finally:
        daemon.terminate()
        daemon.wait()
        target.end()


def by_itself(result, doc):
    """Names are of functions, or FILE:NAME."""
    calls = {}
    for row in doc["functions"]:
        for name in row["name"], os.path.basename(row["file"]) + ":" + row["name"]:
            calls[name] = calls.get(name, 0) + row["ncalls"]
    wrong = [name for name, n in result.items() if calls.get(name, 0) != n]
    for name in wrong:
        print("%s: %d calls, not %d" % (name, calls.get(name, 0), result[name]), file=sys.stderr)
    return len(wrong) + (0 if doc["exact"] else 1)


def by_cprofile(python, args, counter, out, theirs):
    """The number of functions that differ, and the source of the counts."""
    options = ["--event-loop"] if counter == "both" else []
    watched("cprofile", python, args, theirs)
    _, wrong, lost = matrix.differing(out, theirs, *options)
    if wrong == 0 or lost:
        return wrong + lost, ""
    watched("monitoring", python, args, theirs)
    return matrix.differing(out, theirs, "--ncalls", *options)[1], " m"


def off(pairs):
    """For each pair the difference, and the second element."""
    return [(abs(a - b), b) for a, b in pairs]


def too_far(pairs, slack):
    return [(ns, total) for ns, total in pairs if ns > max(SHARE * total, slack)]


def one_run(python, args, counter):
    with tempfile.TemporaryDirectory() as tmp:
        out, raw, theirs = (os.path.join(tmp, name) for name in ("ours", "raw", "theirs"))
        reported, cpu = ours(python, args, out, raw, os.path.join(tmp, "socket"))
        docs = []
        for path in out, raw:
            with open(path) as f:
                docs.append(json.load(f))
        wrong, by = 0, ""
        if counter != "cprofile":
            wrong += by_itself(reported["result"], docs[0])
        if counter != "itself":
            differ, by = by_cprofile(python, args, counter, out, theirs)
            wrong += differ
        return {"wrong": wrong, "text": "%d%s" % (wrong, by),
                "threads": len(docs[0]["threads"]),
                "rows": off(addup.rows(docs[0])) + off(addup.rows(docs[1])),
                "clocks": off(addup.clocks(docs[1], reported["spans"], cpu))}


def cell(python, args, counter, module):
    nothing = {"wrong": 0, "text": "-", "threads": 0, "rows": [], "clocks": []}
    if lacks(python, args, module):
        return nothing
    try:
        for again in range(ATTEMPTS):
            value = dict(one_run(python, args, counter), again=again)
            if value["wrong"] or not too_far(value["clocks"], SLACK_NS):
                break
        return value
    except SystemExit as e:
        print("%s, %s: %s" % (python, " ".join(args), e), file=sys.stderr)
        return dict(nothing, wrong=1, text="failed")


class Kept:
    """The cells so far: (program, interpreter) -> result."""

    def __init__(self, path):
        self.path, self.cells = path, {}
        if path and os.path.exists(path):
            with open(path) as f:
                self.cells = {(row[0], row[1]): row[2] for row in json.load(f)}

    def add(self, key, value):
        self.cells[key] = value
        if self.path:
            with open(self.path + ".new", "w") as f:
                json.dump([list(k) + [v] for k, v in self.cells.items()], f)
            os.replace(self.path + ".new", self.path)


def apart(cells, what, slack):
    """Print the largest deviation, and those that are too large; true if there are none of these."""
    share = (0, "nowhere")
    short, pairs, good = 0, 0, True
    for (name, python), value in sorted(cells.items()):
        for ns, total in too_far(value[what], slack):
            good = False
            print("%s, %s: %s: %d of %d ns" % (name, python, what, ns, total))
        for ns, total in value[what]:
            pairs += 1
            if total >= LONG_NS or not slack:
                share = max(share, (ns / total if total else float(ns != 0), name))
            else:
                short = max(short, ns)
    text = "%d sums, at worst %.4f %% off (%s)" % (pairs, 100 * share[0], share[1])
    if slack:
        text += "; of those below %d ms at worst %d us" % (LONG_NS / 1e6, short / 1e3)
    print(text)
    return good


def times(cells):
    print("\n%d runs, %d threads, %d runs made again because of their clocks." % (
        sum(1 for v in cells.values() if v["rows"]), sum(v["threads"] for v in cells.values()),
        sum(v.get("again", 0) for v in cells.values())))
    print("Rows and their thread's total: ", end="")
    good = apart(cells, "rows", 0)
    print("Threads and the kernel's clocks: ", end="")
    return apart(cells, "clocks", SLACK_NS) and good


def options(argv):
    found = {"--program": [], "--keep": [None], "--seconds": ["0"]}
    pythons = []
    while argv:
        word = argv.pop(0)
        if word in found and argv:
            found[word].append(argv.pop(0))
        else:
            pythons.append(word)
    return (found["--program"], found["--keep"][-1], float(found["--seconds"][-1]),
            pythons or [p for p in matrix.interpreters() if os.access(p, os.X_OK)])


def newest_last(pythons):
    return sorted(pythons, key=lambda p: [int(n) for n in matrix.version_of(p).split(".")])


def main(argv):
    programs, keep, seconds, pythons = options(argv[1:])
    pythons = newest_last(pythons)
    end = time.time() + seconds
    kept = Kept(keep)
    print("| program | " + " | ".join(matrix.version_of(p) for p in pythons) + " |")
    print("|" + "---|" * (len(pythons) + 1), flush=True)
    for name, args, counter, module in PROGRAMS:
        if programs and name not in programs:
            continue
        for python in pythons:
            if (name, python) in kept.cells:
                continue
            if seconds and time.time() > end:
                return AGAIN
            kept.add((name, python), cell(python, args, counter, module))
        row = [kept.cells[name, python]["text"] for python in pythons]
        print("| " + " | ".join([name] + row) + " |", flush=True)
    counts = all(value["wrong"] == 0 for value in kept.cells.values())
    return 0 if times(kept.cells) and counts else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
