#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which interpreters can be traced, and are the counts exact? As root: matrix.py [PYTHON...]

Prints a table: for each interpreter (default: those of ~/.pyenv/versions, /usr/bin/python3 and those
fetched by fetch-interpreters.sh) the result of planning, the verdict of the self-test, and the
number of functions of the programs in tests/targets whose counts differ from cProfile's. Where cProfile
counts calls that only happen because of its events (3.13 and later: generators that are closed while
suspended), sys.monitoring with call events only decides: the second figure. The column
"builtins" is for C functions, with --builtins, in all of these programs. Exits with 1
if an interpreter is not traced, or a count is wrong.
"""

import collections
import contextlib
import glob
import io
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "targets"))
import compare  # noqa: E402
import exact  # noqa: E402

STDLIB = sorted(os.path.basename(p)[:-3] for p in glob.glob(HERE + "/targets/stdlib_*.py"))
# The builds of build-interpreters.sh
BUILT = {"plain": "gcc 16, no PGO, no LTO", "clang": "clang 21, no PGO", "nogil": "free-threaded",
         "tailcall": "clang 21, tail calls", "switch": "gcc 16, --without-computed-gotos"}
COLUMNS = ("CPython", "build", "plan", "self-test", "ns per event", "mixed", "stdlib",
           "builtins")


def suites():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("PYPROF_SUITES") or os.path.join(cache, "pyprofd-tests")


def interpreters():
    found = []
    for version in glob.glob(os.path.expanduser("~/.pyenv/versions/3.*")):
        found.append(os.path.join(version, "bin", "python3"))
    return found + ["/usr/bin/python3"] + glob.glob(suites() + "/*/pyprof/python3.*")


def build_of(python):
    if python.endswith("-embedded"):
        return build_of(python[:-len("-embedded")]) + ", libpython"
    if python.startswith(suites()):
        suite = os.path.relpath(python, suites()).split(os.sep)[0]
        return BUILT.get(suite.rsplit("-", 1)[-1], "Debian " + suite)
    return "pyenv" if ".pyenv" in python else "this system's"


def version_of(python):
    words = subprocess.check_output([python, "-c", "import sys; print(sys.version.split()[0])"])
    return words.decode().strip()


def doctor(python):
    target = subprocess.Popen([python, "-c", "import sys; print('x', flush=True); sys.stdin.read()"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    target.stdout.readline()
    try:
        return subprocess.run([os.path.join(exact.BUILD, "pyprofctl"), "doctor", str(target.pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()
    finally:
        target.stdin.close()
        target.wait()


def plan_of(text):
    if not re.search("^plan", text, re.M):
        return "refused: " + re.search(r" is (.*?), which", text).group(1)
    missing = re.search(r"^missing +(.*)", text, re.M)
    if missing:
        return "no " + missing.group(1)
    stepped = re.findall(r"single-stepped +\S+ +(\S+)", text)
    sites = collections.Counter(re.findall(r" (emulated|single-stepped) ", text))
    plan = "%d sites, all emulated" % sites["emulated"]
    if stepped:
        plan = "%d emulated, stepped: %s" % (sites["emulated"], ", ".join(stepped))
    return plan


def differing(ours, theirs, *options):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        compare.main(["compare.py", ours, theirs] + list(options))
    functions, calls, differ = re.findall(r"(\d+) \w+", out.getvalue().splitlines()[-1])
    return int(functions), int(differ), "says itself" in out.getvalue()


class Sum:
    def __init__(self):
        self.functions = self.cprofile = self.wrong = 0

    def __str__(self):
        if self.cprofile == 0:
            return "0 of %d" % self.functions
        return "%d of %d; %d" % (self.cprofile, self.functions, self.wrong)


def count(python, version, programs):
    total = Sum()
    for program in programs:
        with tempfile.TemporaryDirectory() as tmp:
            ours, theirs = os.path.join(tmp, "ours"), os.path.join(tmp, "theirs")
            exact.under("cprofile", python, program, theirs)
            exact.under_pyprofd(python, program, ours, os.path.join(tmp, "socket"))
            functions, differ, lost = differing(ours, theirs)
            total.functions += functions
            total.cprofile += differ
            if differ and version >= (3, 13):
                exact.under("monitoring", python, program, theirs)
                differ = differing(ours, theirs, "--ncalls")[1]
            total.wrong += differ + lost
    return total


def builtins(python, text):
    """The number of C functions that differ from cProfile's, of how many; or why there is no trace."""
    missing = re.search(r"^C functions: cannot be traced on this build: (.*)", text, re.M)
    if missing:
        return "no " + missing.group(1), True
    native = ["--only-native"]
    total = Sum()
    for program in ["mixed"] + STDLIB:
        with tempfile.TemporaryDirectory() as tmp:
            ours, theirs = os.path.join(tmp, "ours"), os.path.join(tmp, "theirs")
            exact.under("cprofile", python, program, theirs, "--builtins")
            exact.under_pyprofd(python, program, ours, os.path.join(tmp, "socket"), "--builtins")
            functions, differ, lost = differing(ours, theirs, *native)
            total.functions += functions
            total.cprofile += differ
            total.wrong += differ + lost
    return str(total), total.wrong == 0


def row(python):
    version = version_of(python)
    text = doctor(python)
    test = re.search(r"^self-test +(.*)", text, re.M)
    test = test.group(1) if test else "-"
    cost = re.search(r"(\d+) ns per event", test)
    cells = [version, build_of(python), plan_of(text), test.split(":")[0],
             cost.group(1) if cost else "-"]
    if not test.startswith("passed"):
        return cells + ["-", "-", "-"], False
    key = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
    sums = [count(python, key, ["mixed"]), count(python, key, STDLIB)]
    native, right = builtins(python, text)
    return (cells + [str(s) for s in sums] + [native],
            right and all(s.wrong == 0 for s in sums))


def main(argv):
    pythons = argv[1:] or [p for p in interpreters() if os.access(p, os.X_OK)]
    pythons.sort(key=lambda p: [int(n) for n in re.findall(r"\d+", version_of(p))])
    good = True
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS), flush=True)
    for python in pythons:
        cells, right = row(python)
        good &= right
        print("| " + " | ".join(cells) + " |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
