#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Do the unit tests notice an error in the code? mutants.py [OPTIONS] DIRECTORY [PLACE...]

Plants random mutants in the pure stages of the daemon, one at a time, and runs the unit tests of the
file's folder until the first that fails. A mutant is caught if a test fails, crashes or does not end.
It does not count if it cannot be compiled, or if the compiler makes the same code of it at -O2.
Prints the mutants that survive, and a last line `N of M caught`.

All mutable places of all files are equally probable. PLACE restricts them to a folder, a file or a
line of the source tree, such as daemon/snapshot/since.c:359; all of its mutants are then planted.

DIRECTORY gets a copy of the source tree, which is built twice: without optimization, and with
sanitizers. A mutant is a changed copy of one file outside of these; it is compiled, and the test programs
are linked with it in place of the original. First the plain build decides; what survives it runs with
sanitizers, as `make check` does, because only these notice a leak or an access out of bounds.

  --number N    mutants that count (100)
  --seed N      of the random numbers (1)
  --caught PCT  exit with 1 if fewer are caught, in percent (95)
  --jobs N      mutants at a time (2)
  --list        print all mutants of the places, and plant none
  --verbose     print the mutants that are caught as well, and by which program
"""

import argparse
import bisect
import collections
import contextlib
import glob
import itertools
import os
import queue
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPIED = ("Makefile", "bpf", "cli", "daemon", "include", "packaging", "tests")
# Stages that do no I/O and that unit tests cover without a machine's help
STAGES = ("accuracy", "counting", "event", "format", "interval", "plan", "profile", "snapshot",
          "stack", "stats")
# Plans damaged interpreters for minutes; `make check` runs it apart from the unit tests, too.
LEFT_OUT = {"plan/test_damaged.c"}
# Tests of other folders: profile/ passes events to these stages, and their tests use it; the location of the
# GIL (plan/gil.c) is tested with what reads it.
TESTED_BY = {"profile": ("stack", "counting", "accuracy"), "plan": ("inspect",)}

# A program that does not end without using the CPU is stopped after this time.
BLOCKED_S = 60

# ---- C

TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<directive>(?<![^\n])[ \t]*\#(?:/\*.*?\*/|\\\n|[^\n])*)
  | (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""", re.X | re.S)

# A binary operator and what it becomes
OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||",
             "||": "&&", "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<",
             "&": "|", "|": "&", "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|="}
STEPS = {"++": "--", "--": "++"}
ASSERTIONS = {"_Static_assert", "static_assert", "assert"}
NOT_CALLED = ASSERTIONS | {"if", "while", "for", "switch", "return", "sizeof", "case", "goto", "do",
                           "else"}
CONTROLS = {"if", "while", "for", "switch"}

Token = collections.namedtuple("Token", "kind text start end spaced")
Mutant = collections.namedtuple("Mutant", "file line last kind edits")


class Source:
    """A file: its tokens without comments and directives, and the partner of each bracket."""

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.lines = [0] + [m.end() for m in re.finditer("\n", text)]
        self.tokens, self.partner = [], {}
        space = False
        for m in TOKEN.finditer(text):
            if m.lastgroup in ("space", "comment", "directive"):
                space = True
                continue
            spaced = space and text[m.end():m.end() + 1].isspace()
            self.tokens.append(Token(m.lastgroup, m.group(), m.start(), m.end(), spaced))
            space = False
        opened = []
        for i, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            if token.text in "([{":
                opened.append(i)
            elif token.text in ")]}" and opened:
                self.partner[i] = opened.pop()
                self.partner[self.partner[i]] = i

    def is_(self, i, *texts):
        return 0 <= i < len(self.tokens) and self.tokens[i].text in texts

    def line(self, position):
        return bisect.bisect_right(self.lines, position)

    def bodies(self):
        """The ranges of tokens that are the bodies of functions."""
        i = begun = 0
        while i < len(self.tokens):
            if self.is_(i, "{"):
                end = self.partner[i]
                head = [t.text for t in self.tokens[begun:i]]
                if head[-1] == ")" and "=" not in head:
                    yield i + 1, end
                i = begun = end
            elif self.is_(i, ";"):
                begun = i
            i += 1

    def begins_statement(self, i):
        before = i - 1
        if self.is_(before, ")"):
            opening = self.partner[before]
            if self.is_(opening - 1, *CONTROLS):
                return True
            return self.is_(opening + 1, "void") and self.begins_statement(opening)
        return self.is_(before, ";", "{", "}", "else", "do")

    def call_at(self, i):
        """If a statement that only calls a function begins here: the call's last token."""
        if self.tokens[i].kind != "word" or self.tokens[i].text in NOT_CALLED:
            return None
        while self.tokens[i].kind == "word":
            i += 1
            while self.is_(i, "["):
                i = self.partner[i] + 1
            if self.is_(i, "("):
                end = self.partner[i]
                return end if self.is_(end + 1, ";") else None
            if not self.is_(i, ".", "->"):
                return None
            i += 1
        return None

    def mutant(self, kind, *edits):
        """edits: ranges of the text and what replaces them, in order."""
        return Mutant(self.name, self.line(edits[0][0]), self.line(edits[-1][1]), kind, edits)

    def is_operand(self, i):
        return self.tokens[i].kind != "sign" or self.is_(i, ")", "]")

    def mutants_at(self, i, parens):
        token = self.tokens[i]
        text, start, end = token.text, token.start, token.end
        if text in OPERATORS and token.spaced and self.is_operand(i - 1):
            yield self.mutant("%s becomes %s" % (text, OPERATORS[text]),
                              (start, end, OPERATORS[text]))
        elif text in STEPS:
            yield self.mutant("%s becomes %s" % (text, STEPS[text]), (start, end, STEPS[text]))
        elif text == "!":
            yield self.mutant("! dropped", (start, end, ""))
        elif text in ("if", "while") and self.is_(i + 1, "("):
            opening, closing = self.tokens[i + 1], self.tokens[self.partner[i + 1]]
            yield self.mutant("condition negated", (opening.end, opening.end, "!("),
                              (closing.start, closing.start, ")"))
        elif parens == 0 and self.begins_statement(i):
            last = self.call_at(i)
            if last is not None:
                yield self.mutant("call dropped", (start, self.tokens[last].end, "(void)0"))

    def mutants(self):
        for i, end in self.bodies():
            parens = 0
            while i < end:
                if self.tokens[i].text in ASSERTIONS:
                    i = self.partner[i + 1]
                parens += self.is_(i, "(", "[") - self.is_(i, ")", "]")
                yield from self.mutants_at(i, parens)
                i += 1


def apply(text, edits):
    for start, end, new in reversed(edits):
        text = text[:start] + new + text[end:]
    return text


def all_mutants(top, places):
    """The mutants of the stages' files, or of places: a folder, a file or FILE:LINE."""
    found = []
    for stage in STAGES:
        for path in sorted(glob.glob("%s/daemon/%s/**/*.c" % (top, stage), recursive=True)):
            with open(path, encoding="utf-8") as f:
                source = Source(os.path.relpath(path, top), f.read())
            found += source.mutants()

    def is_at(mutant, place):
        name, _, line = place.partition(":")
        inside = mutant.file == name or mutant.file.startswith(name.rstrip("/") + "/")
        return inside and (not line or mutant.line == int(line))

    return [m for m in found if not places or any(is_at(m, p) for p in places)]


def describe(top, mutant):
    with open(os.path.join(top, mutant.file), encoding="utf-8") as f:
        before = f.read()
    after = apply(before, mutant.edits)
    where = slice(mutant.line - 1, mutant.last)
    lines = ["%s:%d: %s" % (mutant.file, mutant.line, mutant.kind)]
    for mark, text in (("-", before), ("+", after)):
        # A call that was dropped may have been longer than what replaces it.
        many = slice(where.start, where.stop + after.count("\n") - before.count("\n")) \
            if mark == "+" else where
        lines += [mark + line for line in text.split("\n")[many]]
    return "\n".join(lines)


# ---- programs

class Program:
    """A test program; cpu: seconds that it takes with the original code, None: not run yet."""

    def __init__(self, build, folder, name):
        self.folder, self.name = folder, name
        self.object = "%s/obj/tests/unit/%s/%s.o" % (build, folder, name)
        self.cpu, self.lock = None, threading.Lock()


class Failure(Exception):
    pass


def output_of(command, **kwargs):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
    if done.returncode:
        raise Failure("%s\n%s" % (" ".join(command), done.stdout.decode(errors="replace")))
    return done.stdout.decode()


class Flavour:
    """One build of the copy, with its commands to compile and to link."""

    def __init__(self, directory, name, jobs, folders, sanitizers):
        self.tree = directory + "/tree"
        self.build = "%s/%s" % (directory, name)
        self.sanitizers = sanitizers
        self.env = environment(self.tree, self.build)
        if sanitizers:  # The plans of one interpreter show errors of memory, too.
            self.env["PYPROF_INTERPRETERS"] = os.path.realpath("/usr/bin/python3")
        self.programs = {folder: [] for folder in folders}
        self.libraries = ["%s/lib%s.a" % (self.build, name)
                          for name in ("harness", "pyprofcli", "pyprof")]
        self.make = ["make", "-C", self.tree, "-j%d" % jobs, "O=" + self.build, "DEV=",
                     "CFLAGS=-O0 -g0 -w", "SAN=" + sanitizers]
        for folder in sorted(folders):
            for path in sorted(glob.glob("%s/tests/unit/%s/test_*.c" % (self.tree, folder))):
                name = os.path.basename(path)
                if folder + "/" + name not in LEFT_OUT:
                    self.programs[folder].append(Program(self.build, folder, name[:-2]))

    def prepare(self):
        wanted = [p.object for programs in self.programs.values() for p in programs]
        wanted += self.libraries + [self.build + "/tests/lib/fakes.stamp"]
        output_of(self.make + wanted, env=self.env)
        # In a rule's recipe, where all variables have their values
        rule = "mutants-commands: ; @:$(info $(CC) $(ALL_CFLAGS))$(info $(CC) $(ALL_LDFLAGS) " \
            "$(TEST_LD) -Wl,--disable-new-dtags,-rpath,$(FAKES))" \
            "$(info $(PKG_LIBS) $(CRITERION_LIBS))"
        printed = output_of(self.make + ["--no-print-directory", "--eval", rule,
                                         "mutants-commands"], env=self.env)
        self.compile, self.link, self.libs = (line.split() for line in printed.splitlines()[-3:])

    def compile_file(self, source, into, *options):
        """Returns whether it can be compiled."""
        command = self.compile + list(options) + ["-c", source, "-o", into]
        return subprocess.run(command, cwd=self.tree, env=dict(self.env, CCACHE_DISABLE="1"),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def run(self, p, work, mutated, cpu_s):
        """Links a test program with these objects before the libraries, and runs it: see run_program()."""
        path = work + "/" + p.name
        # A test may define a function of the file itself.
        output_of(self.link + ["-Wl,-z,muldefs", "-o", path, p.object] + mutated + self.libraries +
                  self.libs, cwd=self.tree, env=self.env)
        try:
            return run_program(self, path, work, cpu_s)
        finally:
            os.unlink(path)

    def measure(self, p, work):
        """Runs a program with the original code, once."""
        with p.lock:
            if p.cpu is None:
                why, cpu = self.run(p, work, [], 1000)
                if why:
                    raise Failure("%s/%s without a mutant: %s" % (p.folder, p.name, why))
                p.cpu = cpu

    def catch(self, mutant, work):
        """Returns which test program fails with the mutant, which is in work, or None."""
        folder = folder_of(mutant)
        stem = os.path.basename(mutant.file)[:-2]
        mutated = work + "/mutant.o"

        def order(p):
            likeness = len(os.path.commonprefix([p.name[len("test_"):], stem]))
            return p.folder != folder, -likeness, p.cpu or 0

        if not self.compile_file("%s/%s.c" % (work, stem), mutated):
            return "cannot be compiled"
        programs = [p for f in (folder,) + TESTED_BY.get(folder, ()) for p in self.programs[f]]
        for p in sorted(programs, key=order):
            self.measure(p, work)
            why, _ = self.run(p, work, [mutated], 5 + 10 * p.cpu)
            if why:
                return "%s/%s: %s" % (p.folder, p.name, why)
        return None


def folder_of(mutant):
    return mutant.file.split("/")[1]


def environment(tree, build):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    env.update(PYPROF_TOP=tree, PYPROF_BUILD=build, PATH="/usr/lib/ccache:" + env["PATH"],
               CCACHE_NOHASHDIR="1", LC_ALL="C.UTF-8")
    env.setdefault("PAGE", TOP + "/build/page")
    return env


def processes_of(root):
    """
    A process and its descendants, and the CPU seconds of all and of their children that have ended.
    Criterion's processes have sessions of their own.
    """
    found, children = {}, collections.defaultdict(list)
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                pid, _, rest = f.read().partition(" ")
        except OSError:  # it has ended
            continue
        fields = rest.rpartition(")")[2].split()
        children[int(fields[1])].append(int(pid))
        found[int(pid)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    family = [root]
    for pid in family:
        family += children[pid]
    return family, sum(found.get(pid, 0) for pid in family)


def run_program(flavour, path, work, cpu_s):
    """
    Runs a test program until its first failure, with a limit on its CPU time. Returns why it fails, or
    None, and its CPU time. As a few tests compare CPU times, which depend on what else the machine does,
    an assertion must fail each of three times.
    """
    for _ in range(3):
        why, used = run_once(flavour, path, work, cpu_s)
        if why != "assertion":
            break
    return why, used


def run_once(flavour, path, work, cpu_s):
    log = work + "/sanitizer"
    env = dict(flavour.env, TMPDIR=work + "/tmp", CACHE_DIRECTORY=work + "/cache",
               ASAN_OPTIONS="log_path=%s:detect_leaks=1" % log, UBSAN_OPTIONS="log_path=" + log)
    for name in ("/tmp", "/cache"):
        shutil.rmtree(work + name, ignore_errors=True)
        os.mkdir(work + name, 0o700)

    # Not --cpu: with it, the kernel counts a process's CPU time in ticks, and tests that compare it fail.
    limits = ["--fsize=%d" % (1 << 30), "--core=0"]
    if not flavour.sanitizers:  # which reserve terabytes
        limits.append("--as=%d" % (8 << 30))
    child = subprocess.Popen(["prlimit"] + limits + [path, "--jobs", "1", "--fail-fast", "--quiet"],
                             env=env, cwd=flavour.tree, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    why = None
    ended = os.pidfd_open(child.pid)
    until = time.monotonic() + BLOCKED_S + 20 * cpu_s
    while not why and not select.select([ended], [], [], 0.5)[0]:
        family, used = processes_of(child.pid)
        if used > cpu_s or time.monotonic() > until:
            why = "does not end"
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    os.close(ended)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode and not why:
        why = "assertion" if child.returncode == 1 else "status %d" % child.returncode
    for name in glob.glob(log + ".*"):
        why = why or "sanitizer"
        os.unlink(name)
    return why, used.ru_utime + used.ru_stime


# ---- the run

class Work:
    """Directories for what is done at the same time."""

    def __init__(self, directory, n):
        self.n, self.free = n, queue.Queue()
        for i in range(n):
            work = "%s/work-%d" % (directory, i)
            shutil.rmtree(work, ignore_errors=True)
            os.mkdir(work)
            self.free.put(work)

    @contextlib.contextmanager
    def one(self):
        work = self.free.get()
        try:
            yield work
        finally:
            self.free.put(work)


def copy_tree(directory):
    tree = directory + "/tree"
    shutil.rmtree(tree, ignore_errors=True)
    os.makedirs(tree)
    for name in COPIED:
        if os.path.isdir(os.path.join(TOP, name)):
            shutil.copytree(os.path.join(TOP, name), os.path.join(tree, name), symlinks=True)
        else:
            shutil.copy2(os.path.join(TOP, name), tree)


def same_code(flavour, work, stem, original, changed):
    """Does the compiler make the same code of both, as it is delivered?"""
    compiled = []
    for text in (original, changed):
        write("%s/%s.c" % (work, stem), text)
        if not flavour.compile_file("%s/%s.c" % (work, stem), work + "/same.o", "-O2"):
            return False
        with open(work + "/same.o", "rb") as f:
            compiled.append(f.read())
    return compiled[0] == compiled[1]


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def plant(mutant, flavours, work):
    """Returns "invalid", "equivalent", "survives", or which program catches it."""
    plain, sanitized = flavours
    stem = os.path.basename(mutant.file)[:-2]
    with open(os.path.join(plain.tree, mutant.file), encoding="utf-8") as f:
        original = f.read()
    changed = apply(original, mutant.edits)
    write("%s/%s.c" % (work, stem), changed)
    caught = plain.catch(mutant, work)
    if caught == "cannot be compiled":
        return "invalid"
    if not caught and same_code(plain, work, stem, original, changed):
        return "equivalent"
    if not caught:
        caught = sanitized.catch(mutant, work)
        return "with sanitizers: " + caught if caught else "survives"
    return caught


def results(mutants, number, flavours, work):
    """Yields the mutants with their results, in order, until there are `number` that count."""
    def one(mutant):
        with work.one() as place:
            return mutant, plant(mutant, flavours, place)

    with ThreadPoolExecutor(work.n) as pool:
        pending, left = collections.deque(), iter(mutants)
        while True:
            pending.extend(pool.submit(one, mutant)
                           for mutant in itertools.islice(left, number - len(pending)))
            if not pending:
                return
            try:
                mutant, result = pending.popleft().result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
            number -= result not in ("invalid", "equivalent")
            yield mutant, result


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--caught", type=float, default=95)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("directory")
    parser.add_argument("places", nargs="*", metavar="PLACE")
    opts = parser.parse_args()
    directory = os.path.abspath(opts.directory)
    begun = time.monotonic()

    mutants = all_mutants(TOP, opts.places)
    if opts.list:
        for mutant in mutants:
            print(describe(TOP, mutant))
        return 0
    if opts.places:
        opts.number = len(mutants)
    else:
        random.Random(opts.seed).shuffle(mutants)
    if not mutants:
        raise Failure("no mutable places in " + " ".join(opts.places))
    folders = {folder_of(m) for m in mutants}
    folders.update(*(TESTED_BY.get(folder, ()) for folder in list(folders)))
    copy_tree(directory)
    flavours = [Flavour(directory, "plain", opts.jobs, folders, ""),
                Flavour(directory, "san", opts.jobs, folders, "address,undefined")]
    work = Work(directory, opts.jobs)
    for flavour in flavours:
        flavour.prepare()
    built = time.monotonic()

    counted = collections.Counter()
    for mutant, result in results(mutants, opts.number, flavours, work):
        kind = result if result in ("invalid", "equivalent", "survives") else "caught"
        counted[kind] += 1
        if kind == "survives" or opts.verbose:
            print(describe(flavours[0].tree, mutant))
            print("  " + result, flush=True)
    caught, number = counted["caught"], counted["caught"] + counted["survives"]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("seed %d, %d places; built in %d s, planted in %d s, %d s of CPU time" % (
        opts.seed, len(mutants), built - begun, time.monotonic() - built,
        used.ru_utime + used.ru_stime))
    print("not counted: %d invalid, %d equivalent" % (counted["invalid"], counted["equivalent"]))
    print("%d of %d caught" % (caught, number))
    return 100 * caught < opts.caught * number


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as e:
        sys.exit(str(e))
