#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""pyprofd on Debian's kernels, in QEMU: kernels.py [--short] [--only CHECK[,CHECK]] [SUITE... | here]
kernels.py --table prints the table of packaging/doc/kernels.md from the results of earlier runs.

Each kernel (kernels/fetch.sh) boots in software emulation with the programs of $PYPROF_BUILD, their
libraries and this machine's Python in a root directory in memory, where kernels/guest.py runs its
checks and prints their results on the serial console. The targets are run by the Python of the
kernel's release, if that is not this machine's. The results are kept in $PYPROF_BUILD/kernels.json: those
of a complete run replace all of the kernel's earlier ones, those of single checks only theirs.
As many kernels run beside each other as there are CPUs; a virtual machine has one.
--short: one kernel, and only the checks that take little time.

Exits with 77 if there is no kernel or no QEMU: a skipped test.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("PYPROF_BUILD", TOP + "/build")
SUITES = ("bullseye", "bookworm", "bookworm-backports", "trixie", "sid", "trixie-backports")
SHORT = "bookworm"
HERE = "here"  # in place of a suite: this machine's kernel, without QEMU
# The release whose Python runs the targets, if it is another one than this machine's
PYTHONS = {"trixie": "trixie", "trixie-backports": "trixie", "sid": "sid"}
PYTHON = os.path.realpath("/usr/bin/python3")
LIBRARY = "/usr/lib/" + os.path.basename(PYTHON)
# Parts of Python's library that no check uses
SPARE = ("test", "idlelib", "lib2to3", "ensurepip", "tkinter", "turtledemo", "pydoc_data",
         "distutils", "__phello__")
# The machine's clock follows the number of its instructions (2 ns each; while it is idle, the clock skips to
# the next timer): however slow the emulation is, no deadline in it passes sooner than on a real machine.
QEMU = ("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none",
        "-serial", "stdio", "-no-reboot", "-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off",
        "-cpu", "max")
COMMAND_LINE = "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init"
# Seconds per kernel: those that are left to this program, if run.sh has started it
TIMEOUT = 3600
UNTIL = float(os.environ.get("PYPROF_TEST_UNTIL", "0"))
ROOT = "/release"  # of the Python of another release, in the machine
USERS = ("root:x:0:0:root:/root:/bin/sh\n"
         "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")


def skip(why):
    print(why, file=sys.stderr)
    sys.exit(77)


# ---- the root directory


def libraries(path):
    """What a program or library is linked with, as absolute paths."""
    done = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return re.findall(r"(/\S+) \(0x", done.stdout.decode())


class Root:
    """A tar file of files of this machine."""

    def __init__(self, path):
        self.tar, self.names = tarfile.open(path, "w"), set()
        for name in ("bin", "lib", "lib64", "sbin"):
            if os.path.islink("/" + name):
                self.tar.add("/" + name)
        for name in ("dev", "proc", "sys", "run", "tmp", "root", "boot", "var/cache"):
            self.directory(name)

    def directory(self, name):
        info = tarfile.TarInfo(name)
        info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
        self.tar.addfile(info)

    def copy(self, source, name):
        info = self.tar.gettarinfo(os.path.realpath(source), name.lstrip("/"))
        info.uid = info.gid = 0
        info.type, info.linkname = tarfile.REGTYPE, ""
        info.size = os.stat(source).st_size
        with open(source, "rb") as data:
            self.tar.addfile(info, data)

    def as_it_is(self, source, name):
        """A file or a link, without what it needs or leads to."""
        if os.path.islink(source):
            self.link(name, os.readlink(source))
        elif os.path.isfile(source):
            self.copy(source, name)

    def file(self, source, name=None):
        """A file with the libraries that it needs, under its own name or another one."""
        name = os.path.realpath(os.path.dirname(name or source)) + "/" + os.path.basename(name or source)
        if name in self.names or not os.path.exists(source):
            return
        self.names.add(name)
        self.copy(source, name)
        with open(source, "rb") as data:
            elf = data.read(4) == b"\x7fELF"
        for library in libraries(source) if elf else ():
            self.file(library)

    def link(self, name, target):
        info = tarfile.TarInfo(name.lstrip("/"))
        info.type, info.linkname = tarfile.SYMTYPE, target
        self.tar.addfile(info)

    def text(self, name, content):
        with tempfile.NamedTemporaryFile() as file:
            file.write(content.encode())
            file.flush()
            os.chmod(file.name, 0o644)
            self.file(file.name, name)

    def tree(self, source, name=None, without=(), add=None):
        """add: the function for each file, instead of `file`"""
        for top, folders, files in os.walk(source):
            folders[:] = sorted(f for f in folders if f not in without)
            for file in sorted(files):
                path = os.path.join(top, file)
                (add or self.file)(path, (name or source) + path[len(source):])


def suite_root(suite):
    """The root directory of another release's Pythons."""
    done = subprocess.run([TOP + "/tests/fetch-interpreters.sh", suite], stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit("the Python of %s cannot be had" % suite)
    launcher = done.stdout.decode().splitlines()[0]
    return os.path.dirname(os.path.dirname(launcher))


def add_python(root, suite):
    """The release's Python with all libraries, below ROOT. Its own links are relative to that."""
    top = suite_root(suite)
    python = os.path.basename(os.path.realpath(top + "/usr/bin/python3"))
    for name in ("bin", "lib", "lib64"):
        root.link(ROOT + "/" + name, "usr/" + name)
    for name in (python, "python3"):
        root.as_it_is(top + "/usr/bin/" + name, ROOT + "/usr/bin/" + name)
    for folder in ("/usr/lib/" + python, "/usr/lib/x86_64-linux-gnu", "/usr/lib64"):
        root.tree(top + folder, ROOT + folder, without=SPARE, add=root.as_it_is)
    root.text(ROOT + "/etc/passwd", USERS)


def make_root(path, suite=None):
    """suite: the release whose Python runs the targets; None: this machine's"""
    root = Root(path)
    if suite:
        add_python(root, suite)
    for name in ("pyprofd", "pyprofctl"):
        root.file(os.path.join(BUILD, name), "/usr/bin/" + name)
    root.file(PYTHON)
    root.link("usr/bin/python3", os.path.basename(PYTHON))
    root.tree(LIBRARY, without=SPARE)
    for name in ("/usr/bin/setpriv", "/bin/busybox", "/lib64/ld-linux-x86-64.so.2"):
        root.file(name)
    root.text("/etc/passwd", USERS)
    root.text("/etc/group", "root:x:0:\nnogroup:x:65534:\n")
    for name in ("targets", "kernels"):
        root.tree(TOP + "/tests/" + name, "/tests/" + name, without=("__pycache__",))
    root.link("usr/sbin/init", "/tests/kernels/guest.py")
    root.tar.close()


def make_initrd(work, tar):
    """The kernel unpacks an archive of three files; init unpacks the rest."""
    tree = os.path.join(work, "initrd")
    os.makedirs(tree + "/bin", exist_ok=True)
    shutil.copy(shutil.which("busybox"), tree + "/bin/busybox")
    shutil.copy(TOP + "/tests/kernels/init", tree + "/init")
    os.rename(tar, tree + "/root.tar")
    names = "init\0bin\0bin/busybox\0root.tar\0"
    with open(work + "/initrd.cpio", "wb") as out:
        subprocess.run(["cpio", "--null", "--create", "--format=newc", "--quiet"], cwd=tree,
                       input=names.encode(), stdout=out, check=True)
    return work + "/initrd.cpio"


# ---- results

KEPT = os.path.join(BUILD, "kernels.json")
NOTE = 240  # characters of a note
# Checks whose texts are worth a cell of the table
TELLING = ("python", "doctor", "privileges", "unprivileged")


def kept():
    if not os.path.exists(KEPT):
        return {}
    with open(KEPT) as file:
        return json.load(file)


KEEPING = threading.Lock()


def keep(suite, version, results, complete):
    """complete: of a run of all checks, so that no earlier results are left"""
    with KEEPING:
        everything = kept()
        entry = everything.setdefault(suite, {"checks": {}})
        if complete:
            entry["checks"] = {}
        entry["version"] = version
        entry["checks"].update({n: r for n, r in results.items() if n not in ("kernel", "end")})
        with open(KEPT, "w") as file:
            json.dump(everything, file, indent=1)


def cell(notes, name, result):
    if result is None:
        return ""
    word, text = result[0], re.sub("^pyprof(d|ctl): ", "", result[1])
    text = textwrap.shorten(re.sub(r"\bprocess \d+", "process PID", text), NOTE, placeholder=" ...")
    if word == "ok" and name.startswith(TELLING):
        return text
    if word == "ok":
        return "yes"
    if text not in notes:
        notes.append(text)
    return "%s (%d)" % ("refused" if word == "refused" else "**fails**", notes.index(text) + 1)


def table():
    everything = kept()
    suites = [s for s in SUITES + (HERE,) if s in everything]
    rows, notes = [], []
    # In the order of the suite with the most checks
    ordered = sorted(suites, key=lambda s: -len(everything[s]["checks"]))
    names = dict.fromkeys(n for s in ordered for n in everything[s]["checks"])
    for name in names:
        cells = [cell(notes, name, everything[s]["checks"].get(name)) for s in suites]
        rows.append([name.replace("_", " ")] + cells)
    print("| | " + " | ".join("%s: %s" % (s, everything[s]["version"]) for s in suites) + " |")
    print("|---" * (len(suites) + 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()
    for i, note in enumerate(notes):
        print("%d. `%s`" % (i + 1, note))


# ---- the machine


def emulated(kernel, initrd, parameters):
    return [*QEMU, "-m", "1536", "-kernel", kernel, "-initrd", initrd, "-append",
            COMMAND_LINE + " " + parameters]


RUNNING = set()  # processes of machines
ENDING = threading.Event()
PREPARING = threading.Lock()  # two kernels may need the same Python


def end_all(*_):
    """Ended by a signal, it ends its machines and keeps no files."""
    ENDING.set()
    for process in list(RUNNING):
        process.terminate()
    sys.exit(1)


class Machine:
    """A run of the checks: `results` is NAME -> (RESULT, TEXT), `log` all other lines."""

    def __init__(self, name, argv, seconds, kept=lambda results: None):
        """kept: called with the results so far, after each check"""
        self.name, self.results, self.log, self.kept = name, {}, [], kept
        begun = time.monotonic()
        process = subprocess.Popen(
            ["nice", "-n", "4", "timeout", "-k", "5", str(seconds), *argv],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        RUNNING.add(process)
        try:
            for line in process.stdout:
                self.read(line.decode(errors="replace").strip())
        finally:
            process.terminate()
            process.wait()
            RUNNING.discard(process)
        self.seconds = time.monotonic() - begun

    def read(self, line):
        found = re.search(r"@@ (\S+)\t(\S+)\t?(.*)", line)
        if not found:
            self.log.append(line)
            return
        name, result, text = found.groups()
        self.results[name] = (result, text)
        if name not in ("kernel", "end"):
            self.kept(self.results)
            print("    %-8s %s: %s: %s" % (result, self.name, name, text), flush=True)

    def complete(self):
        return "end" in self.results

    def passed(self):
        return self.complete() and all(r != "FAIL" for r, _ in self.results.values())


def kernels(suites):
    """(suite, version, directory) of each that can be had."""
    done = subprocess.run([TOP + "/tests/kernels/fetch.sh", *suites], stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)
    return [line.split() for line in done.stdout.decode().splitlines()]


def checked(suite, version, argv, checks):
    print("%s: %s" % (suite, version), flush=True)
    machine = Machine(suite, argv, max(1, UNTIL - 20 - time.monotonic()) if UNTIL else TIMEOUT,
                      lambda results: keep(suite, version, results, not checks))
    print("    %s: %d s" % (suite, machine.seconds), flush=True)
    if not machine.passed():
        print("\n".join(machine.log[-40:]), flush=True)
    return machine.passed()


def prepared(suite, directory, work, checks):
    """The command that boots a kernel; its files are in `work`."""
    parameters = ["check=" + ",".join(checks)] if checks else []
    python = PYTHONS.get(suite)
    if python:
        parameters.append("PYPROF_ROOT=" + ROOT)
    make_root(work + "/root.tar", python)
    initrd = make_initrd(work, work + "/root.tar")
    return emulated(directory + "/vmlinuz", initrd, " ".join(parameters))


def check_kernel(suite, version, directory, checks):
    with tempfile.TemporaryDirectory() as work:
        with PREPARING:
            argv = prepared(suite, directory, work, checks)
        return not ENDING.is_set() and checked(suite, version, argv, checks)


def check_kernels(suites, checks):
    for tool in ("qemu-system-x86_64", "busybox", "cpio"):
        if not shutil.which(tool):
            skip("needs " + tool)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [pool.submit(check_kernel, *kernel, checks) for kernel in kernels(suites)]
    return all(run.result() for run in runs)


def main(argv):
    short, checks = "--short" in argv, []
    if "--table" in argv:
        return table()
    if "--only" in argv:
        i = argv.index("--only")
        checks = argv[i + 1].split(",")
        del argv[i:i + 2]
    suites = [a for a in argv if not a.startswith("-")]
    checks = checks or (["short"] if short else [])
    if suites == [HERE]:
        guest = [TOP + "/tests/kernels/guest.py", *checks]
        return not checked(HERE, os.uname().release, guest, checks)
    return not check_kernels(suites or ([SHORT] if short else SUITES), checks)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end_all)
    sys.exit(main(sys.argv[1:]))
