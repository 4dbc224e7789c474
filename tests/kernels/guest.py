#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks of pyprofd on the kernel that this runs on, as root: guest.py [--short] [CHECK...]

Prints one line per check, `@@ NAME RESULT TEXT` with tabs in between. RESULT: ok; refused, if the
kernel cannot do it and the program says so, with TEXT its message; or FAIL. As the first process of
a virtual machine (kernels.py), it mounts what is needed and switches the machine off at the end.
"""

import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback

from rig import (BIND, CALLS, DEADLINE, NEWNS, OTHER, PRIVATE, REC, ROOT, SHARED, TARGETS, USER, Daemon,
                 Failed, Refused, Target, eventually, expect, functions, interpreter, known, libc, mount,
                 observed, program, ran, refusal, text_differs)

MOUNTS = (("proc", "/proc", "proc"), ("sysfs", "/sys", "sysfs"), ("devtmpfs", "/dev", "devtmpfs"),
          ("tracefs", "/sys/kernel/tracing", "tracefs"), ("cgroup2", "/sys/fs/cgroup", "cgroup2"),
          ("tmpfs", "/tmp", "tmpfs"), ("tmpfs", "/run", "tmpfs"))
POWER_OFF = 0x4321FEDC
MACHINE = os.getpid() == 1  # a virtual machine of its own

# ---- checks


CHECKS = []


def check(short=False):
    def add(function):
        CHECKS.append((function.__name__, function, short))
        return function
    return add


@check(short=True)
def python():
    """Not a check, but the version of the Python that runs the targets."""
    with Target(code="import platform; print(platform.python_version() + '\\nready', flush=True)") as target:
        return target.greeting


@check(short=True)
def doctor():
    with known() as target:
        status, out, err = ran([program("pyprofctl"), "doctor", str(target.pid)])
    if status in (4, 5):
        raise refusal(err.strip() or out)
    expect(status == 0, out, err)
    test = re.search(r"self-test +passed", out)
    expect(test and "C functions: passed" in out, "\n".join(
        line for line in out.splitlines() if not re.search(r" r[a-z0-9]{2} ", line)))
    return re.search(r"load and attach probes, by (.*)", out).group(1)


def theirs(path, observer, *options):
    """What cProfile or sys.monitoring counts in the same program."""
    with Target("run.py", "mixed", "--" + observer, path, *options) as target:
        target.say()
        target.expect("done")
        target.say()
        target.process.wait(DEADLINE)


def ours(path, *options):
    with Target("run.py", "mixed") as target, observed(*options)(target) as daemon:
        target.say()
        target.expect("done")
        daemon.ask("snapshot", "-f", "json", "-o", path)


def differing(*argv):
    """Returns what compare.py says about the first function that differs, if any, and its last line."""
    status, out, err = ran([sys.executable, os.path.join(TARGETS, "compare.py"), *argv])
    expect(status == 0 or "differ" in out, out, err)
    return "" if status == 0 else out, out.strip().splitlines()[-1]


def without_native(path):
    """sys.monitoring counts no C functions. compare.py takes their calls from the edges."""
    with open(path) as file:
        doc = json.load(file)
    with open(path, "w") as file:
        json.dump(dict(doc, edges=[]), file)


def compared(options, observer=(), comparison=()):
    """Counts equal cProfile's, or sys.monitoring's where cProfile causes calls: see fidelity.md."""
    with tempfile.TemporaryDirectory() as directory:
        mine, other = os.path.join(directory, "ours.json"), os.path.join(directory, "theirs.json")
        ours(mine, *options)
        theirs(other, "cprofile", *observer)
        differ, last = differing(mine, other, *comparison)
        if differ and int(interpreter().rpartition(".")[2]) >= 13:
            native = differing(mine, other, "--only-native")[0] if observer else ""
            theirs(other, "monitoring")
            without_native(mine)
            differ = native or differing(mine, other, "--ncalls")[0]
        expect(not differ, differ)
        counted, = re.findall(r"^(\d+) functions, (\d+) calls, \d+ differ$", last)
        return "%s calls of %s functions" % (counted[1], counted[0])


# A kernel accepts programs of which it has to follow a million instructions.
MOST_INSTRUCTIONS = 500000


def instructions(pid):
    """The largest number of instructions that the kernel has followed of a program of the process."""
    most = 0
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/fdinfo/%s" % (pid, fd)) as info:
            found = re.search(r"^verified_insns:\s+(\d+)", info.read(), re.M)
            most = max(most, int(found.group(1)) if found else 0)
    return most


@check(short=True)
def programs():
    """killed() has those without options."""
    most = 0
    for options in (["--builtins", "--counters", "all,memory"], ["--mode", "count", "--builtins"],
                    ["--mode", "sample", "--builtins", "--counters", "memory"]):
        with known() as target, observed("--no-verify", *options)(target) as daemon:
            most = max(most, instructions(daemon.process.pid))
    expect(0 < most < MOST_INSTRUCTIONS, most, "instructions are close to the kernel's limit")
    return "at most %d instructions verified" % most


@check()
def trace():
    return compared([])


def check_known(daemon):
    doc = daemon.snapshot()
    calls = functions(doc)["known"]["ncalls"]
    expect(calls == CALLS and doc["exact"], calls, "calls, exact:", doc["exact"])
    return calls


@check()
def trace_known():
    with known() as target, observed()(target) as daemon:
        target.say()
        target.expect("done")
        calls = check_known(daemon)
        return "%d calls, by %s" % (calls, daemon.row(target.pid)["mechanism"])


@check()
def count():
    return compared(["--mode", "count"], comparison=["--ncalls"])


@check()
def builtins():
    return compared(["--builtins"], ["--builtins"])


@check()
def counters():
    with Target("run.py", "mixed") as target, observed("--counters", "all")(target) as daemon:
        target.say()
        target.expect("done")
        expect(daemon.snapshot()["exact"], "not exact")
        return "recorded"


@check()
def memory():
    with Target("run.py", "memory") as target, observed("--counters", "memory")(target) as daemon:
        target.say()
        target.expect("done")
        names = functions(daemon.snapshot())
        grown = [n for n, f in names.items() if f.get("memory", {}).get("grown", 0) > 1 << 20]
        expect(grown, "no function has grown:", list(names))
        return "%d functions grow" % len(grown)


def estimated(target, name, percent):
    """Windows' estimate of the calls of this function, beside the number that the target reports."""
    with observed("--max-overhead", percent)(target) as daemon:
        target.say()
        calls = json.loads(target.expect("done").partition(" ")[2])["calls"]
        doc = daemon.snapshot()
        spent = daemon.row(target.pid)["windows"]
    row = functions(doc)[name]
    expect(spent["count"] >= 2 and spent["failed"] == 0 and doc["estimated"], spent)
    expect(abs(row["ncalls"] - calls) <= 4 * row["error"]["ncalls"], row["ncalls"],
           "calls were estimated, with a standard error of", row["error"]["ncalls"], "- made were", calls)
    return "%d windows; the estimate is within its error" % spent["count"]


LEAVES = """
import sys, time
def leaf():
    for i in range(400):
        pass
print("ready", flush=True)
for line in sys.stdin:
    calls, end = 0, time.perf_counter() + 20
    while time.perf_counter() < end:
        leaf()
        calls += 1
    print('result {"calls": %d}\\ndone' % calls, flush=True)
"""


@check()
def windows():
    with Target(code=LEAVES) as target:
        return estimated(target, "leaf", "5")


@check()
def windows_of_empty_calls():
    """The worst case: the probes cost many times what they measure."""
    with Target("run.py", "busy_empty", "20") as target:
        return estimated(target, "empty", "20")


def shares(*options):
    with Target("process_tree.py") as target, observed(*options)(target) as daemon:
        target.say("burn 5000 0")
        expect(target.line().startswith("burned"), "burn")
        names = functions(daemon.snapshot())
    cpu = [names[n]["cumtime"]["cpu"] for n in ("one", "two", "three")]
    for i, time_ns in enumerate(cpu):
        expect(abs(time_ns / sum(cpu) - (i + 1) / 6) < 0.08, "shares of CPU time:", cpu)
    return "shares of CPU time"


@check()
def sample():
    return shares("--mode", "sample", "--rate", "199")


@check()
def count_and_sample():
    return shares("--mode", "count", "--rate", "199")


NAPS = """
import sys, time
def nap():
    time.sleep(0.05)
print("ready", flush=True)
for line in sys.stdin:
    for i in range(40):
        nap()
    print("done", flush=True)
"""


@check()
def waits():
    for options in ([], ["--mode", "sample"]):
        with Target(code=NAPS) as target, observed(*options)(target) as daemon:
            target.say()
            target.expect("done")
            row = functions(daemon.snapshot())["nap"]
            slept = row["waits"]["sleep"] / 1e9
            expect(1.7 < slept < 3.5, "slept", slept, "s of 2 s:", row)
    return "sleeping, traced and sampled"


@check()
def following():
    with Target("process_tree.py") as target, observed("--follow-children")(target) as daemon:
        target.say("fork 0 2")
        pids = [int(target.line().split()[2]) for _ in range(2)]
        target.expect("forked")
        for pid in pids:
            eventually(lambda: (daemon.row(pid) or {}).get("state") == "tracing", "the child")
        for member, calls in ((1, 700), (2, 300)):
            target.say("work %d %d" % (member, calls))
            target.expect("worked")
        for pid, calls in zip(pids, (700, 300)):
            doc = daemon.snapshot("--pid", str(pid))
            row = functions(doc)["work"]
            expect(row["ncalls"] == calls and doc["exact"], row)
    return "2 children, exact"


@check()
def child_text():
    """The breakpoints that a child inherits, if it is not followed, are removed."""
    with Target("process_tree.py") as target, observed()(target):
        target.say("fork 0 1")
        pid = int(target.line().split()[2])
        target.expect("forked")
        target.say("work 1 100")
        target.expect("worked")
        eventually(lambda: text_differs(pid) == 0, "a child without breakpoints")
        expect(text_differs(target.pid) > 0, "nothing is traced")
    return "clean"


def clean_after(end, *options):
    with known() as target, observed(*options)(target) as daemon:
        target.say()
        target.expect("done")
        expect(text_differs(target.pid) > 0, "nothing is traced")
        end(daemon, target)
        eventually(lambda: text_differs(target.pid) == 0, "code without breakpoints")
        target.say()
        target.expect("done")
    return "clean"


@check()
def stop():
    return clean_after(lambda d, t: d.ask("stop"))


@check()
def detach():
    return clean_after(lambda d, t: d.ask("detach", str(t.pid)))


def check_and_kill(daemon, _):
    """Loading programs takes longest in emulation: of one run, what trace_known() and programs() check of others."""
    check_known(daemon)
    expect(0 < instructions(daemon.process.pid) < MOST_INSTRUCTIONS, "instructions")
    daemon.process.kill()


@check(short=True)
def killed():
    return clean_after(check_and_kill, "--no-verify")


@check()
def killed_with_builtins():
    return clean_after(lambda d, t: d.process.kill(), "--builtins")


@check()
def start_again():
    with known() as target, observed()(target) as daemon:
        for i in range(3):
            target.say()
            target.expect("done")
            daemon.ask("stop")
            daemon.ask("start")
        row = functions(daemon.snapshot())["known"]
        expect(row["ncalls"] == 3 * CALLS, row["ncalls"])
    return "exact"


@check()
def dump():
    with Target("deep.py") as target:
        status, out, err = ran([program("pyprofctl"), "dump", str(target.pid)])
        expect(status == 0 and "deep.py" in out, out, err)
    return "without probes"


@check()
def objects():
    with known() as target:
        status, out, err = ran([program("pyprofctl"), "objects", str(target.pid)])
        expect(status == 0 and "function" in out, out, err)
    return "without probes"


@check()
def ps():
    with known() as target:
        status, out, err = ran([program("pyprofctl"), "ps"])
        expect(status == 0 and re.search(r"^ *%d " % target.pid, out, re.M), out, err)
    return "without probes"


# ---- BTF


@contextlib.contextmanager
def hidden_btf():
    """A mount namespace in which /sys/kernel/btf is empty."""
    expect(libc.unshare(NEWNS) == 0 and mount(None, "/", None, REC | PRIVATE), "mount namespace")
    expect(mount("none", "/sys/kernel/btf", "tmpfs"), "mount over /sys/kernel/btf")
    try:
        yield
    finally:
        libc.umount2(b"/sys/kernel/btf", 2)


@check()
def without_btf():
    with hidden_btf():
        status, out, err = ran([program("pyprofctl"), "doctor", ROOT + interpreter()])
        expect(status == 5 and "BTF" in out + err, "status", status, out, err)
        try:
            with known() as target, observed()(target):
                raise Failed("attached")
        except Refused as refused:
            expect("BTF" in str(refused), refused)
            raise


@check()
def btf_from_a_file():
    path = "/boot/vmlinux-" + os.uname().release
    with open("/sys/kernel/btf/vmlinux", "rb") as file:
        types = file.read()
    os.makedirs("/boot", exist_ok=True)
    expect(not os.path.exists(path), path, "exists")
    try:
        with hidden_btf():
            with open(path, "wb") as file:
                file.write(types)
            trace_known()
            with open(path, "wb") as file:
                file.write(types[:1000])
            try:
                trace_known()
            except Refused as refused:
                expect("BTF" in str(refused), refused)
                return "exact; a damaged file is refused"
            raise Failed("accepted a damaged file")
    finally:
        os.unlink(path)


# ---- privileges

# From the one that is most likely superfluous to the one that is least so
CAPABILITIES = ("dac_override", "sys_admin", "checkpoint_restore", "dac_read_search", "sys_ptrace",
                "perfmon", "bpf")
# Sets to try first, as each attempt takes long in emulation
NEEDED = ("bpf", "perfmon", "sys_ptrace")
MORE = ((), ("dac_read_search",), ("sys_admin",), ("sys_admin", "dac_read_search"),
        ("sys_admin", "dac_override"))
LIKELY = [NEEDED + more for more in MORE]
MODES = {"trace": ["--no-verify", "--exact"], "count": ["--no-verify", "--mode", "count"],
         "sample": ["--mode", "sample", "--rate", "199"]}


def as_user(capabilities):
    sets = ",".join(["-all"] + ["+" + c for c in capabilities])
    return ("setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups",
            "--inh-caps", sets, "--ambient-caps", sets, "--")


def attempt(options, capabilities, owner):
    """Observe a program of this user with these capabilities. Returns None, or the error message."""
    try:
        with known(owner) as target:
            with Daemon("--pid", str(target.pid), *options, by=as_user(capabilities)) as daemon:
                target.say()
                target.expect("done")
                row = functions(daemon.snapshot()).get("known")
                expect("sample" in options or row and row["ncalls"] == CALLS, "calls:", row)
                return None
    except (Failed, Refused) as e:
        return str(e).strip().splitlines()[-1]


def smallest(options, owner):
    """Leaves out one capability after the other. Returns those needed: name -> the message without it."""
    needed, why = {}, None
    for kept in [*LIKELY, CAPABILITIES]:
        why = attempt(options, kept, owner)
        if why is None:
            break
    if why and "this kernel has no" in why:
        raise Refused(why)
    expect(why is None, "with all of", kept, ":", why)
    for name in [c for c in CAPABILITIES if c in kept]:
        without = [c for c in kept if c != name]
        why = attempt(options, without, owner)
        if why is None:
            kept = without
        else:
            needed[name] = why
    return needed


# What a capability includes is named instead, if that is missing first.
INCLUDED = {"dac_override": "CAP_DAC_READ_SEARCH"}


def privileges_of(mode, owner):
    needed = smallest(MODES[mode], owner)
    unnamed = ["%s: %s" % (name, why) for name, why in needed.items()
               if "CAP_" + name.upper() not in why and INCLUDED.get(name, "CAP_?") not in why]
    expect(not unnamed, "messages that do not name the capability:", "; ".join(unnamed))
    return ", ".join(name.upper() for name in reversed(list(needed)))


@check()
def privileges_trace():
    return privileges_of("trace", USER)


@check()
def privileges_count():
    return privileges_of("count", USER)


@check()
def privileges_sample():
    return privileges_of("sample", USER)


@check()
def privileges_other_users():
    return privileges_of("sample", OTHER)


SCOPE = "/proc/sys/kernel/yama/ptrace_scope"


def set_scope(scope):
    """Returns the one before."""
    if not os.path.exists(SCOPE):
        raise Refused("this kernel has no Yama, so nothing is restricted")
    with open(SCOPE) as file:
        before = file.read()
    with open(SCOPE, "w") as file:
        file.write(scope)
    return before


def unprivileged(scope):
    """What pyprofctl alone can do as the target's user, while Yama permits this much."""
    words, before = [], set_scope(scope)
    try:
        with known(USER) as target:
            pid = str(target.pid)
            for command in (["dump", pid], ["objects", pid], ["doctor", pid], ["ps"]):
                status, out, err = ran([*as_user(()), program("pyprofctl"), *command])
                expect(status in (0, 4), command, "ended with status", status, err)
                words.append("%s %s" % (command[0], "works" if status == 0 else named(err, scope)))
                # Without capabilities it says everything that needs no probe.
                expect(command[0] != "doctor" or "CPython" in out, command, out)
    finally:
        set_scope(before)
    return ", ".join(words)


def named(err, scope):
    """What a refused command says is missing."""
    if "kernel.yama.ptrace_scope is %s " % scope in err:
        return "names ptrace_scope"
    expect("CAP_BPF is missing" in err, err)
    return "names CAP_BPF"


@check()
def unprivileged_scope_0():
    return unprivileged("0")


@check()
def unprivileged_scope_1():
    return unprivileged("1")


@check()
def unprivileged_scope_2():
    return unprivileged("2")


@check()
def ptrace_scope_3():
    """Nobody may read another process's memory, until the next boot. Hence the last check."""
    if not MACHINE:
        raise Refused("it could not be undone")
    set_scope("3")
    with known() as target:
        status, out, err = ran([program("pyprofctl"), "dump", str(target.pid)])
        expect(status == 4 and named(err, "3"), status, out, err)
        try:
            with observed("--no-verify")(target):
                raise Failed("attached")
        except Refused as refused:
            expect(named(str(refused), "3") == "names ptrace_scope", refused)
            raise


# ---- main


def report(name, result, text):
    """In one write: the kernel's messages go to the same console."""
    os.write(1, ("@@ %s\t%s\t%s\n" % (name, result, " ".join(str(text).split()))).encode())


def outcome(function):
    try:
        return "ok", function()
    except Refused as refused:
        return "refused", refused
    except Exception as e:
        return "FAIL", e if isinstance(e, Failed) else traceback.format_exc()


def perform(name, function):
    begun = time.monotonic()
    result, text = outcome(function)
    report(name, result, text)
    os.write(1, ("## %s took %.1f s\n" % (name, time.monotonic() - begun)).encode())


def in_child(name, function):
    """Its own process, so that no mount and no process outlives the check."""
    pid = os.fork()
    if pid == 0:
        try:
            perform(name, function)
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status:
        report(name, "FAIL", "the check ended with status %d" % status)


def set_up_machine():
    for source, target, kind in MOUNTS:
        os.makedirs(target, exist_ok=True)
        mount(source, target, kind)
    for name in SHARED if ROOT else ():
        os.makedirs("%s/%s" % (ROOT, name), exist_ok=True)
        expect(mount("/" + name, "%s/%s" % (ROOT, name), None, BIND), "mount", name)
    for word in open("/proc/cmdline").read().split():
        if word.startswith("check="):
            sys.argv += word[6:].split(",")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LC_ALL="C.UTF-8",
                      LANG="C.UTF-8")


def main():
    if MACHINE:
        set_up_machine()
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
    short = "--short" in sys.argv or "short" in wanted
    report("kernel", "ok", os.uname().release)
    for name, function, is_short in CHECKS:
        if name in wanted or (is_short if short else not wanted):
            in_child(name, function)
    report("end", "ok", "")
    if MACHINE:
        os.sync()
        libc.reboot(POWER_OFF)


if __name__ == "__main__":
    main()
