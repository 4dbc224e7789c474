#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A daemon in continuous mode, and all that happens to it on a machine: machine.py [CSV [SVG]], as root

Servers of four kinds, each three times: one that no daemon knows, one that is sampled, and one that gets random
commands (attach in each mode, start, stop, clear, snapshots in each format, detach). Beside them processes and threads
that come and go, scrapes of metrics and profiles, history, dumps, two receivers of intervals, of which ClickHouse is
killed and started again, and other daemons that are killed with SIGKILL. The same numbers of these as in SOAK_MINUTES
* SOAK_SPEED minutes at the rates of RATES happen in SOAK_MINUTES.

Fails if
- a server's response is wrong, a request to the daemon fails, or a counter of /metrics decreases;
- memory, descriptors, BPF objects or probes grow (curves.GROWTH), or a BPF object outlives the daemon;
- calls are missing that are not counted as lost, an interval is at a receiver twice or not at all, or a process that
  was forked is in no counter;
- code of a target is changed after the end of the daemon, or of another daemon that was killed;
- a server's latencies, relative to those of the one that no daemon knows, are not as before.

CSV and SVG: the curves. SOAK_MINUTES (30), SOAK_SPEED (1), SOAK_SEED (the time; it is printed), PYPROF_BUILD (build).
"""

import json
import mmap
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import actors
import curves
import kernel
import load
import soak
import stores
from soak import Failure

SPEED = float(os.environ.get("SOAK_SPEED", "1"))
SECONDS = 60 * soak.MINUTES
# per minute, at speed 1
RATES = {"forks": 1000, "commands": 30, "scrapes": 4, "profiles": 1, "histories": 1, "dumps": 1,
         "kills": 0.1, "outages": 1 / 30}
INTERVAL = 20       # seconds of an interval, at speed 1
KEEP_MEMORY = "2M"  # little, so that it is full soon
MEASUREMENTS = 120  # in all
CALM = min(60, SECONDS / 12)    # seconds without a daemon, before and after
CALM_JUDGED = 20    # the least whose latencies are compared
GROWTH_JUDGED = 600 # seconds, likewise
SLOWER = 1.3        # allowed ratio of a median latency to what it was
DRAIN = max(600, soak.DEADLINE)  # seconds: a receiver that was down is asked again after at most 5 minutes


class Site:
    """The servers, their clients, and what is known about them."""

    def __init__(self, directory, tag):
        self.servers = [self.start(kind, use, tag) for kind in curves.KINDS for use in curves.USES]
        path = os.path.join(directory, "requests")
        open(path, "wb").close()
        texts = ["%s:%d:%d" % (s.kind, s.port, s.kind in ("gevent", "asyncio")) for s in self.servers]
        self.load = subprocess.Popen([sys.executable, os.path.join(soak.HERE, "load.py"), path, *texts],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     start_new_session=True)
        self.latencies()  # the file has its size
        with open(path, "rb") as f:
            self.numbers = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        self.requests = 0

    @staticmethod
    def start(kind, use, tag):
        found = soak.pythons()
        python = {"gevent": soak.python_with_gevent(), "asyncio": found[-1], "threads": found[0],
                  "prefork": found[len(found) // 2]}[kind]
        server = soak.Server(kind, python, tag if use == "sampled" else use)
        server.use = use
        return server

    def used(self, use):
        return [s for s in self.servers if s.use == use]

    def latencies(self):
        """Returns {(kind, use): of the requests since the last call}."""
        self.load.stdin.write("\n")
        self.load.stdin.flush()
        found = json.loads(self.load.stdout.readline())
        for of in found:
            if of["error"]:
                raise Failure(of["error"])
        return {(s.kind, s.use): of for s, of in zip(self.servers, found)}

    def requests_of(self, server):
        index = self.servers.index(server)
        return lambda: load.counts(self.numbers, index)

    def end(self):
        self.load.stdin.close()
        if self.load.wait(soak.DEADLINE) != 0:
            raise Failure("the clients ended with status %d" % self.load.returncode)
        self.requests = sum(load.counts(self.numbers, i)[1] for i in range(len(self.servers)))
        for server in self.servers:
            server.end()


class Churn:
    def __init__(self, tag):
        self.process = subprocess.Popen(
            [soak.newest_python(), "-W", "ignore", os.path.join(soak.HERE, "churn.py"),
             str(RATES["forks"] * SPEED), tag], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     start_new_session=True)

    def forks(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        forks = self.forks()
        self.process.stdin.close()
        self.process.wait(soak.DEADLINE)
        return forks


class Run:
    def __init__(self, directory):
        self.directory, self.tag = directory, "soak-%d" % os.getpid()
        self.stop, self.rows, self.started = threading.Event(), [], []
        self.objects = kernel.Objects()
        self.cgroup = kernel.Cgroup(self.tag)
        self.forks, self.clients, self.retried = 0, {}, 0
        self.actors, self.store = [], None

    # -- begin --

    def begin(self):
        self.site = Site(self.directory, self.tag)
        self.started += [s.process for s in self.site.servers] + [self.site.load]
        self.receiver = stores.Receiver(self.directory)
        self.started.append(self.receiver.process)
        self.store = stores.ClickHouse(self.directory)
        actors.ctl("fleet", "init", self.store.url)
        self.before = self.calm()
        self.begin_daemon()
        stores.wait_until("sampling the servers", lambda: self.status()["continuous"]["processes"]["sampled"] >= len(
            curves.KINDS), 2 * soak.DEADLINE)
        self.churn = Churn(self.tag)
        self.started.append(self.churn.process)
        self.begin_actors()
        for actor in self.actors:
            actor.start()

    def begin_daemon(self):
        port = stores.free_port()
        self.http = "http://127.0.0.1:%d" % port
        self.daemon = soak.Daemon(
            ["--continuous", "--match", self.tag, "--interval", "%g" % max(1, INTERVAL / SPEED),
             "--keep", os.path.join(self.directory, "keep"), "--keep-size", "16M", "--keep-memory",
             KEEP_MEMORY, "--http", "127.0.0.1:%d" % port, "--push", self.receiver.url, "--push",
             self.store.url], self.cgroup.enter)
        self.started.append(self.daemon.process)

    def begin_actors(self):
        rngs = iter(actors.seeded(soak.SEED, 20))

        def args(what, shares=1):
            return shares * 60 / (RATES[what] * SPEED), self.stop, next(rngs)

        traced = self.site.used("traced")
        self.tracers = [actors.Tracer(self.daemon, s, self.site.requests_of(s), *args("commands", len(traced)))
                        for s in traced]
        self.scraper = actors.Scraper(self.http, *args("scrapes"))
        self.killer = actors.Killer(self.tracers, self.tag, self.objects, *args("kills"))
        self.outages = actors.Outages(self.store, *args("outages"))
        self.profiler = actors.Profiler(self.http, *args("profiles"))
        self.historian = actors.Historian(self.daemon, *args("histories"))
        self.dumper = actors.Dumper(self.site.used("sampled"), *args("dumps"))
        self.actors = self.tracers + [self.scraper, self.killer, self.outages, self.profiler,
                                      self.historian, self.dumper]

    # -- measure --

    def calm(self):
        """Latencies without a daemon."""
        self.site.latencies()
        time.sleep(CALM)
        return self.site.latencies()

    def status(self):
        if self.daemon.process.poll() is not None:
            raise Failure("the daemon ended with status %d: %s" % (self.daemon.process.returncode,
                                                                  self.daemon.said()))
        return json.loads(self.daemon.must(200, "GET", "/v1/status").decode())

    def check_actors(self):
        for actor in self.actors:
            if actor.error:
                raise actor.error

    def of_daemon(self, status):
        pid, continuous = self.daemon.process.pid, status["continuous"]
        programs, maps, uprobes = self.objects.add(pid)
        return {
            "daemon_kib": kernel.rss_kib(pid),
            "senders_kib": sum(kernel.rss_kib(p) for p in kernel.children(pid)
                               if kernel.name(p) == "pyprofd-push"),
            "descriptors": len(os.listdir("/proc/%d/fd" % pid)),
            "bpf_programs": programs, "bpf_maps": maps, "uprobes": uprobes,
            "kernel_kib": self.cgroup.kernel_kib(),
            "lost_intervals": continuous["lost_intervals"] + sum(
                sum(p["dropped"].values()) for p in status["pushes"]),
            "lost_events": sum(t.tracing.sums["lost"] for t in self.tracers),
            "queued": sum(p["queued"] for p in status["pushes"]),
            "sent": sum(p["sent"] for p in status["pushes"]),
        }

    def measure(self, seconds):
        row = {"seconds": seconds, "forks": self.churn.forks(),
               "operations": sum(sum(t.tracing.done.values()) for t in self.tracers)}
        row.update(self.of_daemon(self.status()))
        row["slab_kib"], row["percpu_kib"] = kernel.machine_kib()
        for (kind, use), of in self.site.latencies().items():
            for quantile in "p50", "p99":
                row["%s_%s_%s_ms" % (kind, use, quantile)] = None if of["n"] == 0 else 1e3 * of[quantile]
        self.rows.append(row)

    def soak(self):
        begin = time.monotonic()
        for i in range(1, MEASUREMENTS + 1):
            while time.monotonic() < begin + i * SECONDS / MEASUREMENTS:
                self.check_actors()
                time.sleep(0.05)
            self.measure(time.monotonic() - begin)
            if i % (MEASUREMENTS // 12) == 0:
                print("%4.0f s: %s" % (self.rows[-1]["seconds"], self.progress()), flush=True)

    def progress(self):
        row = self.rows[-1]
        return "%(forks)d forks, %(operations)d commands, %(sent)d sent, %(queued)d queued, %(daemon_kib)d KiB" % row

    # -- end --

    def end_actors(self):
        self.stop.set()
        for actor in self.actors:
            actor.join(2 * soak.DEADLINE)
        self.check_actors()
        for tracer in self.tracers:
            tracer.tracing.let_go()
        self.forks = self.churn.end()

    def check_forks(self, processes):
        """Each forked process is in a counter; others' processes may be as well."""
        known = sum(processes[k] for k in ("short_lived", "attached", "refused", "left_out", "over_limit",
                                           "attaching", "waiting"))
        if known < self.forks and not processes["lost_reports"]:
            raise Failure("%d forks, but %d processes in %s" % (self.forks, known, processes))

    def end_daemon(self):
        """Returns the intervals that it says it has not sent."""
        stores.wait_until("sending what had waited", lambda: not any(
            p["queued"] for p in self.status()["pushes"]), DRAIN)
        status = self.status()
        self.check_forks(status["continuous"]["processes"])
        print("processes: %s" % json.dumps(status["continuous"]["processes"]))
        self.clients = status["dropped_clients"]
        self.retried = sum(p["retried"] for p in status["pushes"] if p["url"].startswith("pyroscope"))
        if any(any(p["dropped"].values()) for p in status["pushes"]) or status["continuous"]["lost_intervals"]:
            raise Failure("lost: %s" % status["pushes"])
        self.daemon.must(200, "POST", "/v1/shutdown", {})
        if self.daemon.process.wait(soak.DEADLINE) != 0:
            raise Failure("the daemon ended with status %d: %s" % (self.daemon.process.returncode,
                                                                  self.daemon.said()))
        return sum(int(n) for n in re.findall(r"(\d+) intervals were not sent", self.daemon.said()))

    def check_receivers(self, unsent):
        """Each interval is at each receiver once; a request whose answer came too late is repeated with its id."""
        ids, stored = self.receiver.ids(), self.store.ids()
        if len(ids) - len(set(ids)) > self.retried or len(stored) != len(set(stored)):
            raise Failure("%d requests for %d intervals, %d stated as repeated; %d of %d stored" % (
                len(ids), len(set(ids)), self.retried, len(set(stored)), len(stored)))
        if len(set(ids) ^ set(stored)) > unsent:
            raise Failure("%d intervals are at one receiver only, %d were stated as not sent" % (
                len(set(ids) ^ set(stored)), unsent))
        print("intervals: %d at one receiver, %d at the other; %d were stated as not sent" % (
            len(set(ids)), len(stored), unsent))

    def end(self):
        self.end_actors()
        unsent = self.end_daemon()
        self.check_receivers(unsent)
        left = self.objects.wait_until_none(soak.DEADLINE)
        if left:
            raise Failure("BPF objects outlive the daemon: %s" % left)
        for server in self.site.servers:
            actors.check_clean(server)
        after = self.calm()
        self.site.end()
        self.report()
        curves.check(self.rows, SECONDS >= GROWTH_JUDGED)
        self.check_latencies(after)

    def check_latencies(self, after):
        """Of servers that were observed, relative to the one that was not, before and after."""
        for kind in curves.KINDS:
            for use in curves.USES[1:]:
                ratios = [of[kind, use]["p50"] / of[kind, "untraced"]["p50"] for of in (self.before, after)]
                pairs = [(r["%s_%s_p50_ms" % (kind, use)], r["%s_untraced_p50_ms" % kind]) for r in self.rows]
                during = statistics.median([a / b for a, b in pairs if a and b] or [0])
                print("%s server, %s: median latency relative to the one untraced: before %.2f, during %.2f, "
                      "after %.2f" % (kind, use, ratios[0], during, ratios[1]))
                if CALM >= CALM_JUDGED and ratios[1] > SLOWER * ratios[0]:
                    raise Failure("the %s server is slower than before" % kind)

    def report(self):
        total = {}
        for tracer in self.tracers:
            for what, n in tracer.tracing.done.items():
                total[what] = total.get(what, 0) + n
        sums = {key: sum(t.tracing.sums[key] for t in self.tracers) for key in self.tracers[0].tracing.sums}
        print("%d requests, all answered right; %d forks" % (self.site.requests, self.forks))
        print("commands: %s; %s; snapshots compared with the number of requests: %d" % (
            json.dumps(total), json.dumps(sums), sum(t.tracing.compared for t in self.tracers)))
        print("because the machine was too busy, %d attaches were refused, %d requests sent again; clients "
              "dropped: %s" % (sum(t.tracing.late for t in self.tracers), self.daemon.dropped, self.clients))
        print("%d scrapes, %d profiles, %d times history, %d dumps; ClickHouse killed %d times, daemons %d times "
              "(%d with probes)" % (self.scraper.done, self.profiler.done, self.historian.done, self.dumper.done,
                                    self.store.kills, self.killer.done, self.killer.with_probes))

    def clean(self):
        self.stop.set()
        for actor in self.actors:
            if actor.is_alive():
                actor.join(soak.DEADLINE)
        if self.store:
            self.store.kill()
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.cgroup.remove()


def write(run):
    if run.rows and len(sys.argv) > 1:
        curves.write_csv(sys.argv[1], run.rows)
    if run.rows and len(sys.argv) > 2:
        curves.write_svg(sys.argv[2], run.rows, "pyprofd --continuous for %g minutes, at %g times the normal rates" % (
            soak.MINUTES, SPEED))


def main():
    if os.geteuid() != 0:
        print("probes need root", file=sys.stderr)
        return 4
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print("machine: %g minutes at speed %g, seed %d" % (soak.MINUTES, SPEED, soak.SEED), flush=True)
    directory = tempfile.mkdtemp()
    os.environ.setdefault("CACHE_DIRECTORY", tempfile.mkdtemp(dir=directory))
    run = Run(directory)
    try:
        run.begin()
        run.soak()
        run.end()
    except Exception as e:
        if not isinstance(e, Failure):
            traceback.print_exc()
        print("FAILED: %s" % e)
        return 1
    finally:
        write(run)
        run.clean()
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
