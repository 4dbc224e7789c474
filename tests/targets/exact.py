#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Are the counts exact? As root: exact.py PROGRAM... [--builtins] [--count] [--python PYTHON]...

Runs each program twice with each interpreter (default: those in ~/.pyenv/versions, and
/usr/bin/python3): under cProfile, and under pyprofd from outside; compares with compare.py. Programs
come from PYPROF_BUILD (default: build). --builtins: C functions as well; --only-native: nothing but
these; --count: in mode count. Exits with 1 if anything differs.
"""

import glob
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("PYPROF_BUILD", "build")
READY_SECONDS = 30


class Target:
    def __init__(self, python, *args):
        self.process = subprocess.Popen([python, os.path.join(HERE, "run.py")] + list(args),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def expect(self, word):
        for line in self.process.stdout:
            if line.strip() == word:
                return
        raise SystemExit("the target ended before it said %r" % word)

    def go(self):
        self.process.stdin.write(b"\n")

    def end(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise SystemExit("the target ended with status %d" % self.process.returncode)


def under(observer, python, program, out, *options):
    target = Target(python, program, "--" + observer, out, *options)
    target.expect(b"ready")
    target.go()
    target.expect(b"done")
    target.end()


def ctl(env, *args):
    return subprocess.call([os.path.join(BUILD, "pyprofctl")] + list(args), env=env,
                           stderr=subprocess.DEVNULL)


def wait_ready(daemon, env):
    deadline = time.time() + READY_SECONDS
    while ctl(env, "ping") != 0:
        if daemon.poll() is not None:
            raise SystemExit("pyprofd ended with status %d" % daemon.returncode)
        if time.time() > deadline:
            raise SystemExit("pyprofd is not ready")
        time.sleep(0.05)


def under_pyprofd(python, program, out, socket, *options):
    target = Target(python, program)
    target.expect(b"ready")
    env = dict(os.environ, PYPROFD_SOCKET=socket)
    way = () if "--mode" in options else ("--exact",)
    daemon = subprocess.Popen([os.path.join(BUILD, "pyprofd"), "--yes", "--pid",
                               str(target.process.pid), *way, *options], env=env)
    try:
        wait_ready(daemon, env)
        target.go()
        target.expect(b"done")
        status = ctl(env, "snapshot", "-f", "json", "-o", out)
        ctl(env, "shutdown")
        if status != 0:
            raise SystemExit("pyprofctl snapshot: status %d" % status)
    finally:
        daemon.terminate()
        daemon.wait()
        target.end()


def compare(ours, theirs, *options):
    return subprocess.call([sys.executable, os.path.join(HERE, "compare.py"), ours, theirs]
                           + list(options))


def check(python, program, options, counting, only_native):
    mode, compared = (["--mode", "count"], ["--ncalls"]) if counting else ([], [])
    compared += ["--only-native"] if only_native else []
    with tempfile.TemporaryDirectory() as tmp:
        ours, theirs = os.path.join(tmp, "ours.json"), os.path.join(tmp, "cprofile.json")
        under("cprofile", python, program, theirs, *options)
        under_pyprofd(python, program, ours, os.path.join(tmp, "socket"), *options + mode)
        return compare(ours, theirs, *compared)


def main(argv):
    pythons, programs, options, counting, only_native = [], [], [], False, False
    argv = argv[1:]
    while argv:
        word = argv.pop(0)
        if word == "--python" and argv:
            pythons.append(argv.pop(0))
        elif word == "--count":
            counting = True
        elif word == "--builtins":
            options.append(word)
        elif word == "--only-native":
            only_native = True
        else:
            programs.append(word)
    if not programs or programs[0].startswith("-"):
        sys.exit(__doc__)
    if not pythons:
        pythons = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
        pythons.append("/usr/bin/python3")
    bad = 0
    for python in pythons:
        for program in programs:
            print("%s %s:" % (python, program), end=" ", flush=True)
            try:
                bad += check(python, program, options, counting, only_native)
            except SystemExit as e:
                print(e)
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
