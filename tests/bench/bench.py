#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What tracing costs, side by side in one run. As root: bench.py [PART...]

Parts: calls builtins known short distortion pause after modes waits bound sustained two; all without any. PYPROF_BUILD says where the programs
are (build), BENCH_PYTHONS which interpreters (default: those found), BENCH_SECONDS how long the
sustained parts take, and the bound (60), BENCH_ROUNDS how often the others are repeated (5).

Variants are interleaved and of each the minimum counts: on a machine that others use as well, more
than that is their cost, not ours. There is no pass or fail.
"""

import glob
import http.client
import json
import math
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGETS = os.path.join(HERE, "..", "targets")
BUILD = os.environ.get("PYPROF_BUILD", "build")
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
READY_SECONDS = 60
CALLS_MS = "100"
WORKS = ("50000 1", "20000 18", "3000 200")  # calls and loops: bodies of about 0.1, 1, 10 us


started = []  # processes, all of which are ended at exit


def start(command, **kwargs):
    process = subprocess.Popen(command, **kwargs)
    started.append(process)
    return process


def end_all():
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


class Talker:
    """A process that answers each line with a line."""

    def __init__(self, *command):
        self.process = start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             universal_newlines=True, bufsize=1)
        self.pid = self.process.pid
        self.first = self.process.stdout.readline().strip()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self, asked):
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise SystemExit("%s: no answer to %r" % (self.process.args, asked))
        return answer

    def ask(self, line):
        self.say(line)
        return self.hear(line)

    def numbers(self, line):
        return [float(word) for word in self.ask(line).split()]

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Floor(Talker):
    def __init__(self, pid):
        super().__init__(os.path.join(BUILD, "tests/bench/bench_floor"), str(pid))

    def on(self):
        assert self.ask("on") == "ok"

    def off(self):
        self.ask("off")


class Daemon:
    def __init__(self, *args):
        self.dir = tempfile.mkdtemp()
        self.env = dict(os.environ, PYPROFD_SOCKET=os.path.join(self.dir, "socket"))
        way = [] if "--mode" in args or "--max-overhead" in args else ["--exact"]
        self.process = start([os.path.join(BUILD, "pyprofd"), "--yes", *way, *args], env=self.env)
        end = time.time() + READY_SECONDS
        while self.ctl("ping", check=False, stderr=subprocess.DEVNULL) != 0:
            if self.process.poll() is not None or time.time() > end:
                raise SystemExit("pyprofd is not ready")

    def ctl(self, *args, check=True, **kwargs):
        status = subprocess.call([os.path.join(BUILD, "pyprofctl")] + list(args), env=self.env,
                                 **kwargs)
        if check and status != 0:
            raise SystemExit("pyprofctl %s: status %d" % (" ".join(args), status))
        return status

    def post(self, path):
        """Without starting another process, because the time is measured."""
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.env["PYPROFD_SOCKET"])
        connection.request("POST", path)
        assert connection.getresponse().status == 200
        connection.close()

    def json(self, *args):
        return json.loads(subprocess.check_output([os.path.join(BUILD, "pyprofctl")] + list(args),
                                                  env=self.env).decode())

    def on(self):
        self.ctl("start")

    def off(self):
        self.ctl("stop")

    def cpu_ns(self):
        with open("/proc/%d/schedstat" % self.process.pid) as f:
            return int(f.read().split()[0])

    def rss_kib(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"VmRSS:\s*(\d+)", f.read()).group(1))

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()
        shutil.rmtree(self.dir)


class InTarget:
    """A profiler inside the target."""

    def __init__(self, target, name):
        self.target, self.name = target, name

    def on(self):
        self.target.ask("profiler " + self.name)

    def off(self):
        self.target.ask("profiler none")


def target_of(python):
    return Talker(python, os.path.join(HERE, "target.py"))


def has_yappi(python):
    return subprocess.call([python, "-c", "import yappi"], stderr=subprocess.DEVNULL) == 0


def version_of(python):
    return subprocess.check_output([python, "-c", "import platform as p; print(p.python_version())"
                                    ]).decode().strip()


def can_be_traced(python):
    target = target_of(python)
    status = subprocess.call([os.path.join(BUILD, "pyprofctl"), "doctor", str(target.pid)],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    target.end()
    return status == 0


def find_pythons():
    given = os.environ.get("BENCH_PYTHONS")
    if given:
        return given.split()
    found = glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3.[0-9]*"))
    found += glob.glob("/usr/bin/python3.[0-9]*")
    found = [p for p in found if re.search(r"/python3\.\d+$", p)]
    return sorted(filter(can_be_traced, found),
                  key=lambda p: [int(n) for n in re.findall(r"\d+", version_of(p))])


def title(text):
    print("\n%s\n%s" % (text, "-" * len(text)))


def ratio(a, b):
    return "%7.2f" % (a / b) if b and b > 0 else "      -"


def interleaved(variants, measure):
    """name -> list of measure()'s results, in rounds over all the variants."""
    results = {name: [] for name, _ in variants}
    for _ in range(ROUNDS):
        for name, tool in variants:
            if tool:
                tool.on()
            results[name].append(measure(name))
            if tool:
                tool.off()
    return results


# --- parts ---

def calls(python):
    target = target_of(python)
    floor, daemon = Floor(target.pid), Daemon("--pid", str(target.pid), "--no-start")
    variants = [("untraced", None), ("cProfile", InTarget(target, "cProfile"))]
    if has_yappi(python):
        variants.append(("yappi, cpu clock", InTarget(target, "yappi")))
    variants += [("empty uprobes", floor), ("pyprofd", daemon)]
    results = interleaved(variants, lambda _: target.numbers("calls " + CALLS_MS))
    best = {name: min(r[0] for r in results[name]) for name, _ in variants}
    median = {name: statistics.median(r[1] for r in results[name]) for name, _ in variants}
    added = {name: best[name] - best["untraced"] for name, _ in variants}
    print("%-18s %9s %9s %9s %9s %9s" % ("ns per call", "minimum", "median", "added", "/ floor",
                                         "/ yappi"))
    for name, tool in variants:
        print("%-18s %9.1f %9.1f %9.1f %9s %9s" % (
            name, best[name], median[name], added[name],
            ratio(added[name], added["empty uprobes"]) if tool else "",
            ratio(added[name], added.get("yappi, cpu clock", 0)) if tool else ""))
    daemon.end()
    floor.end()
    target.end()


CCALLS = ("len", "append", "sqrt", "upper", "int")


def builtins(python):
    """The overhead of each profiler per call of a C function. int is a type and has no row, but
    a probe looks at its calls as well."""
    target = target_of(python)
    pid = str(target.pid)
    variants = [("untraced", None), ("cProfile", InTarget(target, "cProfile"))]
    if has_yappi(python):
        variants.append(("yappi, builtins", InTarget(target, "yappi-builtins")))
    for name, options in (("trace", []), ("trace --builtins", ["--builtins"]),
                          ("count", ["--mode", "count"]),
                          ("count --builtins", ["--mode", "count", "--builtins"])):
        variants.append((name, Daemon("--pid", pid, "--no-start", *options)))
    results = interleaved(variants, lambda _: {
        call: target.numbers("ccalls %s 20" % call)[0] for call in ("nothing",) + CCALLS})
    least = {name: {call: min(r[call] for r in results[name]) for call in ("nothing",) + CCALLS}
             for name, _ in variants}
    print("%-20s %9s" % ("ns more per call", "nothing") + "".join(" %9s" % c for c in CCALLS) +
          "   geometric mean / yappi")
    base = {call: least["untraced"][call] for call in least["untraced"]}
    for name, tool in variants:
        more = {call: least[name][call] - (base[call] if tool else 0) for call in base}
        line = "%-20s %9.1f" % (name, more["nothing"]) + "".join(
            " %9.1f" % more[call] for call in CCALLS)
        yappi = least.get("yappi, builtins")
        if tool and yappi and "builtins" in name:
            ratios = [more[call] / (yappi[call] - base[call]) for call in CCALLS if call != "int"]
            line += " %9.2f" % statistics.geometric_mean(map(abs, ratios))
        print(line)
    for name, tool in variants:
        if isinstance(tool, Daemon):
            tool.end()
    target.end()


def known(python):
    """Longer C functions: the time of a call as measured by the target without a tracer, and the
    reported time. The two alternate; the figures are means."""
    target = target_of(python)
    daemon = Daemon("--pid", str(target.pid), "--no-start", "--builtins")
    target.ask("known 20")
    truth, counts, mine = {}, {}, {}
    for _ in range(2 * ROUNDS):
        for name, calls, cpu, wall in json.loads(target.ask("known 50")):
            truth.setdefault(name, []).append((cpu / calls, wall / calls))
        daemon.ctl("clear")
        daemon.on()
        made = json.loads(target.ask("known 50"))
        daemon.off()
        rows = {f["name"]: f for f in daemon.json("snapshot", "-f", "json")["functions"]
                if f["native"]}
        for name, calls, _, _ in made:
            times, n = rows[name]["cumtime"], rows[name]["ncalls"]
            counts[name] = counts.get(name, 0) + abs(n - calls)
            mine.setdefault(name, []).append((times["cpu"] / 1e9 / n, times["wall"] / 1e9 / n))
    print("%-46s %7s %11s %8s %11s %8s" % ("function", "off by", "cpu, us", "reported",
                                           "wall, us", "reported"))
    for name in truth:
        was, is_ = ([statistics.mean(r[c] for r in of[name]) for c in (0, 1)]
                    for of in (truth, mine))
        print("%-46s %7d %11.2f %8.3f %11.2f %8.3f" % (
            name, counts[name], was[0] * 1e6, is_[0] / was[0], was[1] * 1e6, is_[1] / was[1]))
    daemon.end()
    target.end()


SHORT = {"len": "<built-in method builtins.len>", "append": "<method 'append' of 'list' objects>",
         "sqrt": "<built-in method math.sqrt>", "upper": "<method 'upper' of 'str' objects>"}


def short(python):
    """C functions below 100 ns: the time of a call (of a loop with it, minus that of the empty
    loop), the reported time, and its reported standard error. The two alternate."""
    target = target_of(python)
    daemon = Daemon("--pid", str(target.pid), "--no-start", "--builtins")
    print("%-8s %10s %9s %9s  %s" % ("function", "a call, ns", "reported", "error",
                                     "within two errors"))
    for kind, name in SHORT.items():
        found = []
        for _ in range(2 * ROUNDS):
            empty = float(target.ask("ccalls nothing " + CALLS_MS).split()[1])
            truth = float(target.ask("ccalls %s %s" % (kind, CALLS_MS)).split()[1]) - empty
            daemon.ctl("clear")
            daemon.on()
            target.ask("ccalls %s %s" % (kind, CALLS_MS))
            daemon.off()
            rows = [f for f in daemon.json("snapshot", "-f", "json")["functions"] if f["name"] == name]
            calls = sum(f["ncalls"] for f in rows)
            errors = [f["error"]["tottime"]["cpu"] for f in rows if f.get("error")]
            known = all(e is not None for e in errors) and len(errors) == len(rows)
            error = math.sqrt(sum(e * e for e in errors)) / calls if known else math.nan
            found.append((truth, sum(f["tottime"]["cpu"] for f in rows) / calls, error))
        print("%-8s %10.1f %9.1f %9.1f  %d of %d" % (
            (kind,) + tuple(statistics.median(f[i] for f in found) for i in range(3)) +
            (sum(abs(t - r) <= 2 * e for t, r, e in found), len(found))))
    daemon.end()
    target.end()


def shares_of(daemon, *options):
    found = {f["name"]: f["cumtime"]["cpu"] for f in
             daemon.json("snapshot", "-f", "json", *options)["functions"]}
    return [found["with_calls"], found["without_calls"]]


def distortion_of(target, daemon, names, work):
    """For one length of the calls' bodies: pairs of CPU times, by profiler and round."""
    variants = [("untraced", None)] + [(n, InTarget(target, n)) for n in names]
    results = {name: [] for name in [v[0] for v in variants] + ["pyprofd", "pyprofd, raw"]}
    for _ in range(ROUNDS):
        for name, tool in variants:
            if tool:
                tool.on()
            answer = target.numbers("work " + work)
            if tool:
                answer = target.numbers("shares")
                tool.off()
            results[name].append(answer)
        daemon.ctl("clear")
        daemon.on()
        target.ask("work " + work)
        results["pyprofd"].append(shares_of(daemon))
        results["pyprofd, raw"].append(shares_of(daemon, "--raw-times"))
        daemon.off()
    return results


def distortion(python):
    """Work in small functions compared with the same work without calls: the change of their ratio."""
    target = target_of(python)
    daemon = Daemon("--pid", str(target.pid), "--no-start")
    names = ["cProfile"] + (["yappi"] if has_yappi(python) else [])
    results = [distortion_of(target, daemon, names, work) for work in WORKS]
    true = [statistics.median(a / b for a, b in r["untraced"]) for r in results]
    bodies = [min(b for _, b in r["untraced"]) / int(work.split()[0]) * 1e6
              for r, work in zip(results, WORKS)]
    print("%-24s" % "a call's body, us" + "".join("%9.2f" % b for b in bodies))
    print("%-24s" % "true ratio of the two" + "".join("%9.2f" % t for t in true))
    for name in names + ["pyprofd", "pyprofd, raw"]:
        print("%-24s" % (name + ", / true") + "".join(
            "%9.2f" % (statistics.median(a / b for a, b in r[name]) / t)
            for r, t in zip(results, true)))
    daemon.end()
    target.end()


def longest_gap(gaps, window):
    """The longest gap that overlaps the window, in us."""
    return max([b - a for a, b in gaps if a < window[1] and b > window[0]] or [0])


def pause(python):
    """The longest gap of a spinning thread during no operation, an attach, and a detach."""
    target = target_of(python)
    daemon = Daemon("--pid", str(target.pid), "--no-start")
    windows = {"nothing": [], "attach": [], "detach": []}

    def window(name, step):
        begin = time.perf_counter()
        step()
        end = time.perf_counter()
        windows[name].append((begin * 1e6, end * 1e6))
        return end - begin

    os.setpriority(os.PRIO_PROCESS, target.pid, -20)  # other processes must not cause gaps
    target.ask("spin")
    for _ in range(ROUNDS * 4):
        length = window("attach", lambda: daemon.post("/v1/start"))
        window("detach", lambda: daemon.post("/v1/stop"))
        window("nothing", lambda: time.sleep(length))
    found = target.numbers("gaps")
    gaps = list(zip(found[0::2], found[1::2]))
    print("%-18s %9s %9s %9s %9s" % ("longest gap, us", "minimum", "median", "maximum", "during"))
    for name, of_name in windows.items():
        longest = [longest_gap(gaps, w) for w in of_name]
        print("%-18s %9.1f %9.1f %9.1f %9.1f" % (
            name, min(longest), statistics.median(longest), max(longest),
            statistics.median(w[1] - w[0] for w in of_name)))
    daemon.end()
    target.end()


def after(python):
    """Speed of a process that was traced, compared with its speed before, and with a process that was
    never traced, whose ratio shows the machine's changes."""
    traced, never = target_of(python), target_of(python)
    first = []

    def speeds():
        pairs = [(never.numbers("calls 50")[0], traced.numbers("calls 50")[0])
                 for _ in range(ROUNDS)]
        return min(p[0] for p in pairs), min(p[1] for p in pairs)

    def show(what):
        now = speeds()
        if not first:
            first.extend(now)
        print("%-18s %9.2f %9.3f %9.2f %9.3f" % (what, now[0], now[0] / first[0], now[1],
                                                 now[1] / first[1]))

    print("%-18s %19s %19s" % ("ns per call", "never traced, ratio", "traced, ratio"))
    show("before")
    daemon = Daemon("--pid", str(traced.pid))
    traced.ask("calls 200")
    daemon.off()
    show("after stop")
    daemon.on()
    traced.ask("calls 200")
    daemon.end()
    show("after its end")
    daemon = Daemon("--pid", str(traced.pid))
    traced.ask("calls 200")
    daemon.end(signal.SIGKILL)
    show("after kill -9")
    traced.end()
    never.end()


def sustained(python, targets=1):
    """Threads that call an empty function as fast as they can, each in its own process."""
    busy = [Talker(python, os.path.join(TARGETS, "run.py"), "busy_empty", str(SECONDS))
            for _ in range(targets)]
    daemon = Daemon(*[word for b in busy for word in ("--pid", str(b.pid))])
    rss, cpu, begin = daemon.rss_kib(), daemon.cpu_ns(), time.monotonic()
    for b in busy:
        b.say("go")
    made = [json.loads(b.hear("go").split(None, 1)[1])["calls"] for b in busy]
    seconds = time.monotonic() - begin
    found = daemon.json("status", "--json")["targets"]
    events, lost = sum(t["events"] for t in found), sum(t["lost"] for t in found)
    cpu, rss_end = daemon.cpu_ns() - cpu, daemon.rss_kib()
    daemon.end()
    for b in busy:
        b.end()
    print("%-28s %14d" % ("targets at full rate", targets))
    print("%-28s %14s" % ("calls made", format(sum(made), ",")))
    print("%-28s %14s" % ("events", format(events, ",")))
    print("%-28s %14s" % ("events per second", format(int(events / seconds), ",")))
    print("%-28s %14d" % ("events lost", lost))
    print("%-28s %14.1f" % ("daemon's CPU, ns per event", cpu / events))
    print("%-28s %14.1f" % ("daemon's CPU, % of one", 100 * cpu / 1e9 / seconds))
    print("%-28s %8d, %4d" % ("daemon's RSS, KiB", rss, rss_end))


def modes_calls(python):
    """Mode count compared with mode trace: ns per call of an empty function."""
    target = target_of(python)
    floor, pid = Floor(target.pid), str(target.pid)
    trace = Daemon("--pid", pid, "--no-start")
    count = Daemon("--pid", pid, "--no-start", "--mode", "count")
    variants = [("untraced", None), ("empty uprobes", floor), ("trace", trace), ("count", count)]
    results = interleaved(variants, lambda _: target.numbers("calls " + CALLS_MS))
    best = {name: min(r[0] for r in results[name]) for name, _ in variants}
    added = {name: best[name] - best["untraced"] for name, _ in variants}
    print("%-18s %9s %9s %9s %9s" % ("ns per call", "minimum", "added", "/ floor", "/ trace"))
    for name, tool in variants:
        print("%-18s %9.1f %9.1f %9s %9s" % (
            name, best[name], added[name], ratio(added[name], added["empty uprobes"]) if tool else "",
            ratio(added[name], added["trace"]) if tool else ""))
    for tool in (trace, count):
        tool.end()
    floor.end()
    target.end()


def modes_sample(python):
    """CPU time of the same work with and without samples."""
    target = target_of(python)
    os.setpriority(os.PRIO_PROCESS, target.pid, -20)
    daemons = [(rate + " Hz", Daemon("--pid", str(target.pid), "--no-start", "--mode", "sample",
                                     "--rate", rate)) for rate in ("99", "999")]
    found = {}
    for _ in range(4):
        for name, times in interleaved([("unsampled", None)] + daemons,
                                       lambda _: sum(target.numbers("work 5000 200"))).items():
            found.setdefault(name, []).extend(times)
    best = {name: min(times) for name, times in found.items()}
    print("%-18s %9s %9s" % ("CPU time, ms", "minimum", "added, %"))
    for name, least in best.items():
        print("%-18s %9.1f %9.2f" % (name, 1e3 * least, 100 * (least / best["unsampled"] - 1)))
    for _, daemon in daemons:
        daemon.end()
    target.end()


def modes(python):
    modes_calls(python)
    modes_sample(python)


WAITS = (("20000 10", "short: most are skipped"), ("300 4000", "long: all are walked"))


def waits(python):
    """CPU time of a wait: its two context switches, and the walk of its stack."""
    target = target_of(python)
    pid = str(target.pid)
    trace = Daemon("--pid", pid, "--no-start")
    sample = Daemon("--pid", pid, "--no-start", "--mode", "sample")
    os.environ["PYPROFD_WALK_AHEAD"] = "1"
    ahead = Daemon("--pid", pid, "--no-start", "--mode", "sample")
    del os.environ["PYPROFD_WALK_AHEAD"]
    variants = [("untraced", None), ("trace", trace), ("sample", sample), ("sample, ahead", ahead)]
    for args, what in WAITS:
        results = interleaved(variants, lambda _: target.numbers("waits " + args))
        best = {name: min(r[0] for r in results[name]) for name, _ in variants}
        print("%-24s %9s %9s" % (what, "ns", "added"))
        for name, least in best.items():
            print("  %-22s %9.0f %9.0f" % (name, least, least - best["untraced"]))
    for daemon in trace, sample, ahead:
        daemon.end()
    target.end()


BOUND = 5
MIXED = ["mix_round"] + ["mix_%d" % i for i in range(5)]


def shares_of_mix(daemon):
    found = {f["name"]: f["tottime"]["cpu"] for f in
             daemon.json("snapshot", "-f", "json")["functions"]}
    whole = sum(found.values())
    return [100 * found.get(name, 0) / whole for name in MIXED]


def bound(python):
    """Under --max-overhead: the slowdown of a program with many calls, and how far its functions' shares
    are from those of a full trace and of samples, which no probe disturbs (their own error is about 0.3
    points). The slowdown relative to the same tenth of a second is reduced by that of untraced turns,
    which the machine causes; the other slowdown is relative to untraced turns."""
    target, turns = target_of(python), 6
    pid, slice_ = str(target.pid), str(SECONDS / (2 * turns))
    bounded = Daemon("--pid", pid, "--no-start", "--max-overhead", str(BOUND))
    full = Daemon("--pid", pid, "--no-start")
    samples = Daemon("--pid", pid, "--no-start", "--mode", "sample", "--rate", "999")
    times = {"untraced": [], "bounded": []}
    target.ask("mix 1")
    for _ in range(turns):
        times["untraced"].append(target.numbers("mix " + slice_))
        bounded.on()
        times["bounded"].append(target.numbers("mix " + slice_))
        bounded.off()
    for what, i in (("slower than around it, %", 1), ("slower than in other turns, %", 0)):
        slower = [100 * (b[i] / a[i] - 1) for a, b in zip(times["untraced"], times["bounded"])]
        print("%-30s %6.2f, each turn %s" % (what, statistics.mean(slower),
                                             " ".join("%.1f" % s for s in slower)))
    windows = bounded.json("snapshot", "-f", "json")["targets"][0]["windows"]
    print("%-28s %8d, %.1f %% of its CPU time" % ("windows", windows["count"],
                                                  100 * windows["cpu_share"]))
    shares = [shares_of_mix(bounded)]
    for tool in (full, samples):
        tool.on()
        target.ask("mix %g" % (SECONDS / 3))
        tool.off()
        shares.append(shares_of_mix(tool))
    print("%-12s %9s %9s %9s %9s %9s" % ("share, %", "bounded", "full", "off by", "samples",
                                         "off by"))
    for name, mine, whole, seen in zip(MIXED, *shares):
        print("%-12s %9.2f %9.2f %9.2f %9.2f %9.2f" % (name, mine, whole, mine - whole, seen,
                                                       mine - seen))
    for tool in (bounded, full, samples):
        tool.end()
    target.end()


def two(python):
    sustained(python, 2)


PARTS = {"calls": calls, "builtins": builtins, "known": known, "short": short, "distortion": distortion,
         "pause": pause, "after": after, "modes": modes, "waits": waits, "bound": bound, "sustained": sustained, "two": two}
ONCE = ("sustained", "two", "modes", "waits", "bound")


def machine():
    model = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    print("%d CPUs (%s), Linux %s, load average %s" % (
        os.cpu_count(), model.group(1) if model else "?", os.uname().release,
        "%.2f %.2f %.2f" % os.getloadavg()))


def main():
    parts = sys.argv[1:] or list(PARTS)
    if os.geteuid() != 0:
        print("probes need root: sudo make bench", file=sys.stderr)
        return 4
    if not set(parts) <= set(PARTS):
        sys.exit(__doc__)
    machine()
    pythons = find_pythons()
    for part in parts:
        for python in pythons[-1:] if part in ONCE else pythons:
            title("%s: %s, %s" % (part, version_of(python), python.replace(
                os.path.expanduser("~"), "~")))
            PARTS[part](python)
            sys.stdout.flush()
    print()
    machine()
    return 0


try:
    sys.exit(main())
finally:
    end_all()
