# SPDX-License-Identifier: BSD-2-Clause
"""What the checks of guest.py and unit.py use: targets, the daemon, waiting, comparing code with files"""

import contextlib
import ctypes
import json
import os
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
TARGETS = os.path.join(os.path.dirname(HERE), "targets")
BUILD = os.environ.get("PYPROF_BUILD", "")
# The root directory of another Debian release, whose Python runs the targets then
ROOT = os.environ.get("PYPROF_ROOT", "")
SHARED = ("dev", "proc", "tmp", "tests")
DEADLINE = 300  # seconds; software emulation is slow
NEWNS, BIND, REC, PRIVATE = 0x00020000, 4096, 16384, 1 << 18
USER, OTHER = 12346, 12347

libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    pass


class Refused(Exception):
    """The program names what the kernel lacks."""

    def __init__(self, text):
        super().__init__(text.strip().splitlines()[-1])


def refusal(text):
    """The exception for an exit status of 4 or 5. That programs do not load is never a good reason."""
    if "BPF programs" in text:
        return Failed(text)
    return Refused(text)


def expect(ok, *what):
    if not ok:
        raise Failed(" ".join(str(w) for w in what))


def mount(source, target, kind=None, flags=0):
    encoded = [a.encode() if a else None for a in (source, target, kind)]
    return libc.mount(encoded[0], encoded[1], encoded[2], flags, None) == 0


def interpreter():
    """The Python that runs the targets, by its path in ROOT."""
    return "/usr/bin/" + os.path.basename(os.path.realpath(ROOT + "/usr/bin/python3"))


def program(name):
    return os.path.join(BUILD, name) if BUILD else name


def eventually(found, what, seconds=DEADLINE):
    deadline = time.monotonic() + seconds
    while True:
        value = found()
        if value:
            return value
        expect(time.monotonic() < deadline, "waited in vain for", what)
        time.sleep(0.05)


def ran(argv, **kwargs):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=DEADLINE, **kwargs)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


# ---- targets


class Target:
    """A program of tests/targets: lines in, lines out."""

    def __init__(self, *argv, user=None, code=None):
        def become():
            if ROOT:
                os.chroot(ROOT)
                os.chdir("/")
            if user is not None:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)

        argv = ("-c", code) if code else (os.path.join(TARGETS, argv[0]),) + argv[1:]
        self.process = subprocess.Popen((interpreter(),) + argv, stdin=subprocess.PIPE, cwd="/",
                                        stdout=subprocess.PIPE, preexec_fn=become)
        self.pid = self.process.pid
        self.greeting = self.expect("ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def say(self, line="go"):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def line(self):
        line = self.process.stdout.readline().decode()
        expect(line, "the target has ended: status", self.process.poll())
        return line.strip()

    def expect(self, word):
        """Returns the line before it."""
        before, line = "", self.line()
        while line != word:
            before, line = line, self.line()
        return before


KNOWN = """
import sys
def known(n):
    return n + 1
print("ready", flush=True)
for line in sys.stdin:
    for i in range(%d):
        known(i)
    print("done", flush=True)
"""
CALLS = 2345


def known(user=None, calls=CALLS):
    return Target(code=KNOWN % calls, user=user)


def text_differs(pid):
    """The number of bytes in the process's executable mappings of files that are not as in the files."""
    n = 0
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as mem:
        for line in maps:
            span, mode, offset, _, inode, *_ = line.split(None, 5)
            if mode[2] != "x" or inode == "0":
                continue
            start, end = (int(a, 16) for a in span.split("-"))
            mem.seek(start)
            with open("/proc/%d/map_files/%x-%x" % (pid, start, end), "rb") as file:
                file.seek(int(offset, 16))
                want = file.read(end - start)
            got = mem.read(end - start)[:len(want)]
            if got != want:
                n += sum(a != b for a, b in zip(got, want))
    return n


# ---- the daemon


class Daemon:
    def __init__(self, *argv, by=(), env=None):
        self.dir = tempfile.TemporaryDirectory()
        os.chmod(self.dir.name, 0o777)
        self.by, self.socket = by, os.path.join(self.dir.name, "s")
        self.error = os.path.join(self.dir.name, "error")
        with open(self.error, "w") as error:
            os.chmod(self.error, 0o666)
            self.process = subprocess.Popen(
                [*by, program("pyprofd"), "--socket", self.socket, *argv], stdin=subprocess.DEVNULL,
                stdout=error, stderr=error, env=dict(os.environ, **(env or {})))

    def __enter__(self):
        eventually(lambda: self.process.poll() is not None or self.run("ping")[0] == 0, "pyprofd")
        if self.process.poll() is not None:
            status, text = self.process.returncode, open(self.error).read().strip()
            if status in (4, 5):
                raise refusal(text)
            raise Failed("pyprofd ended with status %d: %s" % (status, text))
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.dir.cleanup()

    def run(self, *argv):
        return ran([*self.by, program("pyprofctl"), "--socket", self.socket, *argv])

    def ask(self, *argv):
        status, out, err = self.run(*argv)
        if status in (4, 5):
            raise refusal(err)
        expect(status == 0, argv[0], "ended with status", status, err)
        return out

    def row(self, pid):
        rows = json.loads(self.ask("status", "--json"))["targets"]
        return next((r for r in rows if r["pid"] == pid), None)

    def snapshot(self, *argv):
        return json.loads(self.ask("snapshot", "-f", "json", *argv))


def functions(doc):
    """name -> row, the first of each name."""
    return {f["name"]: f for f in reversed(doc["functions"])}


def observed(*options):
    """The daemon beside a target that is traced from its first to its last call; its snapshot."""
    way = () if {"--mode", "--max-overhead"}.intersection(options) else ("--exact",)

    @contextlib.contextmanager
    def beside(target):
        with Daemon("--yes", "--pid", str(target.pid), *way, *options) as daemon:
            yield daemon
    return beside
