# SPDX-License-Identifier: BSD-2-Clause
"""What happens to the daemon and to its targets during the soak, each in a thread of its own."""

import glob
import gzip
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time

import kernel
import load
import soak
import stores
from soak import Failure

FORMATS = ("text pstats json callgrind collapsed speedscope pprof chrome html page callers callees threads "
           "coroutines coroutines-csv tree waits gil openmetrics rows csv").split()
OF_TIMES = ("collapsed", "speedscope", "chrome", "coroutines", "coroutines-csv", "tree")
OF_WAITS = ("waits", "gil")
MODES = (
    {"mode": "trace"}, {"mode": "trace", "exact": True}, {"mode": "trace", "exact": True, "builtins": True},
    {"mode": "trace", "exact": True, "counters": "all"}, {"mode": "trace", "max_overhead": 5},
    {"mode": "trace", "exact": True, "follow_children": True},
    {"mode": "count", "rate": 0}, {"mode": "count", "rate": 199},
    {"mode": "count", "rate": 0, "follow_children": True},
    {"mode": "sample", "rate": 99}, {"mode": "sample", "rate": 99, "counters": "memory"},
)
RING = 4 << 20  # of targets with a mode of their own


def formats_of(given):
    """Those that show something of a target with these options."""
    if given["mode"] == "count":
        return [f for f in FORMATS if f not in OF_TIMES]
    if given["mode"] == "sample" or "exact" not in given:  # light, or in windows
        return [f for f in FORMATS if f not in OF_WAITS]
    return FORMATS


def ctl(*args):
    """pyprofctl's output."""
    for _ in range(soak.RETRIES):
        r = subprocess.run([os.path.join(soak.BUILD, "pyprofctl"), *args], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=soak.DEADLINE)
        if b"communication with the daemon" not in r.stderr:
            break
    if r.returncode != 0:
        raise Failure("pyprofctl %s: status %d: %s" % (" ".join(args), r.returncode, r.stderr.decode()))
    return r.stdout


class Actor(threading.Thread):
    """Acts once in a number of seconds on average, and keeps the first error."""

    def __init__(self, every, stop, rng):
        super().__init__(daemon=True)
        self.every, self.stop, self.random = every, stop, rng
        self.done, self.error = 0, None

    def run(self):
        due = time.monotonic() + self.random.uniform(0, self.every)
        try:
            while not self.stop.wait(max(0, due - time.monotonic())):
                self.act()
                self.done += 1
                due = max(due + self.every, time.monotonic() - 10 * self.every)
        except Exception as e:
            self.error = e if isinstance(e, Failure) else Failure("%s: %r" % (type(self).__name__, e))


class Scraper(Actor):
    def __init__(self, http, *args):
        super().__init__(*args)
        self.http, self.counters = http, {}

    def act(self):
        for line in stores.fetch_patiently(self.http + "/metrics").decode().splitlines():
            found = re.fullmatch(r"(\w+_total(?:\{.*\})?) (\S+)", line)
            if not found:
                continue
            name, value = found.group(1), float(found.group(2))
            if value < self.counters.get(name, 0) and "pid=" not in name:
                raise Failure("%s: %g after %g" % (name, value, self.counters[name]))
            self.counters[name] = value


class Profiler(Actor):
    """Scrapes profiles as pprof's tools do."""

    def __init__(self, http, *args):
        super().__init__(*args)
        self.http = http

    def act(self):
        gzip.decompress(stores.fetch_patiently(self.http + "/debug/pprof/profile?seconds=2"))


class Historian(Actor):
    """Lists the last intervals, and adds them up."""

    def __init__(self, daemon, *args):
        super().__init__(*args)
        self.daemon = daemon

    def act(self):
        history = ["--socket", self.daemon.socket, "history"]
        if json.loads(ctl(*history, "list", "--from", "-1min", "--json"))["intervals"]:
            ctl(*history, "merge", "--from", "-1min", "-f", self.random.choice(formats_of({"mode": "sample"})))


class Dumper(Actor):
    """Reads the stacks of servers without the daemon."""

    def __init__(self, servers, *args):
        super().__init__(*args)
        self.servers = servers

    def act(self):
        server = self.random.choice(self.servers)
        dump = json.loads(ctl("dump", str(server.pid), "--json"))
        if not any(t["frames"] for t in dump["threads"]):
            raise Failure("a dump of the %s server has no frames" % server.kind)


class Outages(Actor):
    """Kills ClickHouse, and starts it again."""

    DOWN = 20

    def __init__(self, server, *args):
        super().__init__(*args)
        self.server = server

    def act(self):
        self.server.kill()
        self.stop.wait(self.DOWN)
        self.server.start()


class Spans:
    """Bounds of the number of requests that a server handled while it was traced.

    moments are pairs of the numbers of load.counts(), before and after a command.
    """

    def __init__(self):
        self.low = self.high = 0
        self.begun = None

    def begin(self, before, after):
        self.begun = (before, after)

    def with_last(self, before, after):
        """Bounds if the span under way ended between these two."""
        if not self.begun:
            return self.low, self.high
        return (self.low + max(0, before[1] - self.begun[1][0]),
                self.high + after[0] - self.begun[0][1])

    def end(self, before, after):
        self.low, self.high = self.with_last(before, after)
        self.begun = None

    def clear(self, before, after):
        self.low = self.high = 0
        if self.begun:
            self.begin(before, after)


class Tracing(soak.Soak):
    """Commands for one server, and its expected state."""

    EVERYONE = 0  # other targets are others' business

    def __init__(self, daemon, server, requests, rng):
        super().__init__(daemon, [server], rng)
        self.server, self.requests = server, requests
        self.spans, self.given = Spans(), {}
        self.compared = 0

    def options(self):
        self.given = self.random.choice(MODES)
        return dict(self.given, ring_size=RING)

    def attach(self, pid):
        new, before = pid not in self.attached, self.requests()
        super().attach(pid)
        if new:
            self.spans = Spans()
            if self.attached.get(pid):
                self.spans.begin(before, self.requests())

    def control(self, what, pid):
        was, before = self.attached.get(pid), self.requests()
        super().control(what, pid)
        if what == "clear":
            self.spans.clear(before, self.requests())
        elif what == "start" and was is False:
            self.spans.begin(before, self.requests())
        elif what == "stop" and was:
            self.check_states()  # no longer "stopping"
            self.spans.end(before, self.requests())

    def snapshot(self, pid):
        given = self.given or {"mode": "trace"}
        form, before = self.random.choice(formats_of(given) + ["json"] * 4), self.requests()
        clocks = ("cpu",) if given["mode"] == "sample" else ("cpu", "wall")
        path = "/v1/snapshot?pid=%d&format=%s&clock=%s" % (pid, form, self.random.choice(clocks))
        text = self.daemon.must(200 if pid in self.attached else 404, "GET", path)
        if pid in self.attached and form == "json":
            snapshot = json.loads(text.decode())
            if self.given["mode"] == "trace":
                self.look_at(snapshot)
            self.compare(snapshot, self.spans.with_last(before, self.requests()))

    def compare(self, snapshot, bounds):
        """Each request calls answers.parse once: events that are missing must have been stated as lost."""
        if self.server.kind == "prefork" or self.given["mode"] == "sample":
            return
        if self.given["mode"] == "trace" and "exact" not in self.given:
            return
        calls = sum(f["ncalls"] for f in snapshot["functions"]
                    if f["name"] == "parse" and f["file"].endswith("answers.py"))
        lost = sum(t["lost"] for t in snapshot["targets"])
        if not bounds[0] - lost <= calls <= bounds[1]:
            json.dump(snapshot, open("/tmp/soak2.snapshot.json", "w"))
            raise Failure("%s server, %s: %d calls and %d lost events, but %d to %d requests; %s; status: %s" % (
                self.server.kind, self.given, calls, lost, *bounds, self.last,
                self.daemon.ask("GET", "/v1/targets/%d" % self.server.pid)[1].decode()))
        self.compared += 1

    def detach(self, pid):
        super().detach(pid)
        for target in json.loads(self.daemon.must(200, "GET", "/v1/targets").decode())["targets"]:
            if target.get("forked_from") == pid:
                self.daemon.ask("DELETE", "/v1/targets/%d" % target["pid"])

    def let_go(self):
        self.check_states()
        for pid in list(self.attached):
            self.detach(pid)


class Tracer(Actor):
    """Random commands for one server."""

    def __init__(self, daemon, server, requests, *args):
        super().__init__(*args)
        self.lock, self.server = threading.Lock(), server
        self.tracing = Tracing(daemon, server, requests, self.random)

    def act(self):
        with self.lock:
            self.tracing.step()
            if self.done % soak.QUIET_EVERY == 0:
                self.tracing.let_go()


def check_clean(server):
    """No process of the server has a breakpoint in its code."""
    end = time.monotonic() + soak.DEADLINE
    while True:
        changed = {pid: kernel.changed_code(pid) for pid in kernel.process_tree(server.pid)}
        if not any(changed.values()):
            return
        if time.monotonic() > end:
            raise Failure("%s server: changed bytes in its code: %s" % (server.kind, changed))
        time.sleep(0.05)


class Killer(Actor):
    """Daemons that are killed at a random moment: of one server, and in continuous mode."""

    def __init__(self, tracers, tag, seen, *args):
        super().__init__(*args)
        self.tracers, self.tag, self.seen = tracers, tag, seen
        self.with_probes = 0  # kills while breakpoints were in the target

    def kill(self, seconds, args, pid=None):
        directory = tempfile.mkdtemp()
        with open(os.path.join(directory, "stderr"), "wb") as stderr:
            daemon = subprocess.Popen([os.path.join(soak.BUILD, "pyprofd"), "--socket",
                                       os.path.join(directory, "socket"), *args], stderr=stderr,
                                      start_new_session=True)
        self.stop.wait(self.random.uniform(0, seconds))
        self.seen.add(daemon.pid)
        ended = daemon.poll()
        self.with_probes += bool(pid and kernel.changed_code(pid))
        daemon.kill()
        daemon.wait()
        with open(os.path.join(directory, "stderr"), "rb") as f:
            said = f.read()
        if ended is not None and soak.LATE not in said:
            raise Failure("pyprofd %s ended with status %d: %s" % (" ".join(args), ended, said.decode()))
        shutil.rmtree(directory)

    def kill_tracer(self):
        tracer = self.random.choice(self.tracers)
        with tracer.lock:
            tracer.tracing.let_go()
            self.kill(2, ["--pid", str(tracer.server.pid), "--yes",
                          *self.random.choice((["--exact"], ["--mode", "count"]))], tracer.server.pid)
            check_clean(tracer.server)

    def kill_continuous(self):
        """What it has kept is complete."""
        keep = tempfile.mkdtemp()
        self.kill(8, ["--continuous", "--match", self.tag, "--interval", "1", "--keep", keep])
        for path in glob.glob(os.path.join(keep, "*", "*.gz")):
            with gzip.open(path) as f:
                f.read()
        json.loads(ctl("history", "list", "--dir", keep, "--json"))
        shutil.rmtree(keep)

    def act(self):
        if self.done % 2:
            self.kill_continuous()
        else:
            self.kill_tracer()


def requests_of(numbers, index):
    return lambda: load.counts(numbers, index)


def seeded(seed, n):
    rng = random.Random(seed)
    return [random.Random(rng.random()) for _ in range(n)]
