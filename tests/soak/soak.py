#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Servers under load while tracing is started and stopped at random. As root: soak.py

A gevent server and an asyncio server answer clients that check every response, while
one daemon gets commands to start, stop, clear, detach, attach and take snapshots at random moments.
Fails if a response is wrong or missing, if a command has an unexpected result, if events
do not match their stacks although none were lost, if the daemon's memory grows or files stay open.

SOAK_MINUTES (30), SOAK_STEPS (0: commands at least, however long they take), SOAK_SEED (the time; it is printed),
SOAK_ARGS (pyprofd's), PYPROF_BUILD (build).
"""

import glob
import http.client
import json
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "targets"))
import answers  # noqa: E402

BUILD = os.environ.get("PYPROF_BUILD", "build")
MINUTES = float(os.environ.get("SOAK_MINUTES", "30"))
STEPS = int(os.environ.get("SOAK_STEPS", "0"))
ARGS = os.environ.get("SOAK_ARGS", "").split()
SEED = int(os.environ.get("SOAK_SEED", str(int(time.time()))))
# Until the end of the time that run.sh gives this program, less what ending takes; alone: of one event
UNTIL = float(os.environ.get("PYPROF_TEST_UNTIL", "0"))
DEADLINE = max(1, UNTIL - 20 - time.monotonic()) if UNTIL else 180
RETRIES = 4            # of requests that the daemon dropped
DROPPED = (http.client.RemoteDisconnected, http.client.IncompleteRead, ConnectionResetError, BrokenPipeError)
CLIENTS = 3            # per server
THINK = 0.004          # seconds between a client's requests: less load than the machine can handle
QUIET_EVERY = 40       # operations between two checks of memory and files
# Greenlets that may be suspended when tracing begins: one per client, with its children, each
# with at most this number of frames that call a function before they return.
UNSEEN_MAX = CLIENTS * (1 + answers.CHILDREN) * 12
SLACK_KIB = 6 * 1024   # allowed fluctuation of memory
WARM = 0.3          # share of the time after which every kind of event has occurred once
LATE = b"took more than"  # in the message of an attach that was refused because a deadline passed
FORMATS = ("json", "text", "pstats", "callgrind", "collapsed", "rows", "pprof", "csv")


class Failure(Exception):
    pass


class Server:
    """In a session of its own, as a service: the scheduler may group processes by session."""

    def __init__(self, kind, python, *tag):
        self.kind = kind
        self.process = subprocess.Popen([python, os.path.join(HERE, "server.py"), kind, *tag],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True)
        self.pid = self.process.pid
        port = self.process.stdout.readline()
        if not port:
            raise Failure("the %s server did not start:\n%s" % (
                kind, self.process.stderr.read().decode()))
        self.port = int(port)

    def end(self):
        _, err = self.process.communicate(timeout=DEADLINE)
        if self.process.returncode != 0 or err:
            raise Failure("the %s server ended with status %d and said:\n%s" % (
                self.kind, self.process.returncode, err.decode()))


class Client(threading.Thread):
    """Sends requests, compares the responses, keeps the first error."""

    def __init__(self, server, seed, stop):
        super().__init__(daemon=True)
        self.server, self.random, self.stop = server, random.Random(seed), stop
        self.requests, self.slowest, self.error = 0, 0.0, None

    def one(self, connection):
        kind, n = self.random.choice(answers.KINDS), self.random.randrange(1000)
        begin = time.monotonic()
        connection.request("GET", "/%s/%d" % (kind, n))
        response = connection.getresponse()
        body = response.read()
        wanted = answers.expected(self.server.kind, kind, n)
        if response.status != 200 or body != wanted:
            raise Failure("/%s/%d: status %d, %r instead of %r" % (kind, n, response.status, body,
                                                                  wanted))
        self.requests += 1
        self.slowest = max(self.slowest, time.monotonic() - begin)

    def run(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port,
                                                    timeout=DEADLINE)
            while not self.stop.is_set():
                self.one(connection)
                time.sleep(THINK)
            connection.close()
        except Exception as e:
            self.error = "%s server: %r" % (self.server.kind, e)


class Daemon:
    def __init__(self, args=None, enter=None):
        self.dir, self.dropped = tempfile.mkdtemp(), 0
        self.socket = os.path.join(self.dir, "socket")
        self.stderr = open(os.path.join(self.dir, "stderr"), "w+")
        command = [os.path.join(BUILD, "pyprofd"), "--socket", self.socket] + (ARGS if args is None else args)
        self.process = subprocess.Popen(command, stderr=self.stderr, preexec_fn=enter,
                                        start_new_session=True)
        end = time.monotonic() + DEADLINE
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failure("the daemon did not start: " + self.said())
            time.sleep(0.02)

    def said(self):
        self.stderr.seek(0)
        return self.stderr.read()

    def answers(self):
        try:
            return self.ask("GET", "/v1/ping")[0] == 200
        except OSError:
            return False

    def ask(self, method, path, body=None):
        """Returns status and body. On a busy machine, the daemon drops clients whose requests take too long."""
        for _ in range(RETRIES):
            try:
                return self.ask_once(method, path, body)
            except DROPPED:
                self.dropped += 1
        return self.ask_once(method, path, body)

    def ask_once(self, method, path, body):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(DEADLINE)
        try:
            connection.sock.connect(self.socket)
            connection.request(method, path, json.dumps(body) if body is not None else None)
            response = connection.getresponse()
            return response.status, response.read()
        except socket.timeout:
            raise Failure("%s %s: no answer in %d s; the daemon's threads: %s" % (
                method, path, DEADLINE, self.threads())) from None
        finally:
            connection.close()

    def threads(self):
        """State, CPU time (ticks) and the kernel's function of each."""
        found = []
        for path in glob.glob("/proc/%d/task/*" % self.process.pid):
            with open(path + "/stat") as stat, open(path + "/stack") as stack:
                fields = stat.read().rpartition(")")[2].split()
                found.append((fields[0], int(fields[11]) + int(fields[12]), stack.read().split("\n")[:6]))
        return found

    def must(self, wanted, method, path, body=None):
        status, text = self.ask(method, path, body)
        if status != wanted:
            raise Failure("%s %s %s: status %d instead of %d: %s" % (
                method, path, body, status, wanted, text[:400]))
        return text

    def rss_kib(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"VmRSS:\s*(\d+)", f.read()).group(1))

    def end(self):
        self.must(200, "POST", "/v1/shutdown", {})
        if self.process.wait(DEADLINE) != 0 or self.said():
            raise Failure("the daemon ended with status %d and said: %s" % (
                self.process.returncode, self.said()))


def open_files(pid):
    return sorted(os.readlink(f) for f in glob.glob("/proc/%d/fd/*" % pid) if os.path.islink(f))


class Soak:
    """The operations on the daemon, and its expected state."""

    EVERYONE = 0.2  # share of the commands that concern all targets

    def __init__(self, daemon, targets, rng):
        self.daemon, self.targets, self.random = daemon, targets, rng
        self.attached = {}  # pid -> is it traced?
        self.done = {}
        self.sums = {"events": 0, "lost": 0, "unmatched": 0, "unseen": 0}
        self.explained = 0
        self.begun = 0  # number of starts of tracing
        self.memory = []  # (time, KiB), measured while all targets are detached
        self.files = open_files(daemon.process.pid)
        self.snapshots = 0
        self.late = 0   # attaches refused because the machine was too busy
        self.last = []  # steps, for messages

    def options(self):
        """Returns the options of the next target."""
        return {}

    # -- operations; each sets self.attached to the expected state of the daemon --

    def attach(self, pid):
        start = self.random.random() < 0.7
        if pid in self.attached:
            self.daemon.must(409, "POST", "/v1/targets", {"pid": pid})
            return
        body = dict(self.options(), pid=pid, start=start)
        status, text = self.daemon.ask("POST", "/v1/targets", body)
        if status == 500 and LATE in text:
            self.late += 1
            return
        if status != 201:
            raise Failure("POST /v1/targets %s: status %d: %s" % (body, status, text[:400]))
        self.attached[pid] = start
        self.begun += start

    def detach(self, pid):
        if pid not in self.attached:
            self.daemon.must(404, "DELETE", "/v1/targets/%d" % pid)
            return
        self.collect(pid)
        self.daemon.must(200, "DELETE", "/v1/targets/%d" % pid)
        del self.attached[pid]

    def control(self, what, pid):
        everyone = self.random.random() < self.EVERYONE
        body = {} if everyone else {"pid": pid}
        if not everyone and pid not in self.attached:
            self.daemon.must(404, "POST", "/v1/" + what, body)
            return
        for p in self.attached if everyone else [pid]:
            if what == "clear":
                self.collect(p)
            else:
                self.begun += what == "start" and not self.attached[p]
                self.attached[p] = what == "start"
        self.daemon.must(200, "POST", "/v1/" + what, body)

    def start(self, pid):
        self.control("start", pid)

    def stop(self, pid):
        self.control("stop", pid)

    def clear(self, pid):
        self.control("clear", pid)

    def snapshot(self, pid):
        form = self.random.choice(FORMATS)
        path = "/v1/snapshot?format=%s&clock=%s" % (form, self.random.choice(("cpu", "wall")))
        if self.random.random() < 0.5:
            path += "&pid=%d" % pid
        wanted = 404 if "pid=" in path and pid not in self.attached else 200
        text = self.daemon.must(wanted, "GET", path)
        if wanted == 200 and form == "json":
            self.look_at(json.loads(text.decode()))

    def wait(self, _):
        time.sleep(self.random.uniform(0, 1.5))

    # -- checks --

    def look_at(self, snapshot):
        """Checks that every thread's rows add up to its total."""
        self.snapshots += 1
        for clock in "cpu", "wall":
            sums = [0] * len(snapshot["threads"])
            for node in snapshot["nodes"]:
                sums[node["thread"]] += node["self"][clock]
            for thread, total in zip(snapshot["threads"], sums):
                if abs(total - thread["total"][clock]) > 1e-3 * max(total, 1e6):
                    raise Failure("thread %d: rows add up to %d of %d ns" % (
                        thread["tid"], total, thread["total"][clock]))

    def collect(self, pid):
        """Adds up the target's counters before they are zeroed."""
        status = json.loads(self.daemon.must(200, "GET", "/v1/targets/%d" % pid).decode())
        for key in self.sums:
            self.sums[key] += status.get(key, 0)
        # If events are lost, others may not match; each report mentions that.
        if status["lost"]:
            self.explained += status["unmatched"]
        elif status["unmatched"]:
            print("pid %d: %s" % (pid, json.dumps(status)))

    def check_states(self):
        end = time.monotonic() + DEADLINE
        while True:
            status = json.loads(self.daemon.must(200, "GET", "/v1/status").decode())
            mine = [t.pid for t in self.targets]
            found = {t["pid"]: t["state"] for t in status["targets"] if t["pid"] in mine}
            # the kernel may take longer to detach probes than a stop waits for
            if "stopping" not in found.values() or time.monotonic() > end:
                break
            time.sleep(0.05)
        wanted = {p: "tracing" if on else "attached" for p, on in self.attached.items()}
        if found != wanted:
            raise Failure("the daemon holds %s instead of %s" % (found, wanted))

    def quiet(self):
        """With all targets detached, memory and files can be compared."""
        self.check_states()
        for pid in list(self.attached):
            self.detach(pid)
        self.memory.append((time.monotonic(), self.daemon.rss_kib()))
        end = time.monotonic() + DEADLINE
        while len(open_files(self.daemon.process.pid)) > len(self.files):
            if time.monotonic() > end:
                raise Failure("the daemon had %s open, now %s" % (
                    self.files, open_files(self.daemon.process.pid)))
            time.sleep(0.05)

    def step(self):
        name = self.random.choices(("attach", "start", "stop", "clear", "snapshot", "detach",
                                    "wait"), (5, 5, 4, 2, 6, 2, 5))[0]
        target = self.random.choice(self.targets)
        self.last = self.last[-9:] + ["%.2f %s %d" % (time.monotonic(), name, target.pid)]
        getattr(self, name)(target.pid)
        self.done[name] = self.done.get(name, 0) + 1


def check_clients(clients):
    for client in clients:
        if client.error:
            raise Failure(client.error)


def check_memory(memory, begin, end):
    warm = [kib for t, kib in memory if t > begin + WARM * (end - begin)]
    if len(warm) < 6:
        print("memory: the run is too short to compare")
        return
    third = len(warm) // 3
    first, last = statistics.median(warm[:third]), statistics.median(warm[-third:])
    print("memory of the daemon, nothing attached: %d KiB, later %d KiB" % (first, last))
    if last - first > SLACK_KIB:
        raise Failure("the daemon's memory grows: %s" % [kib for _, kib in memory])


def pythons():
    """The installed interpreters, oldest first; at least the one that runs this."""
    found = glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))
    found.sort(key=lambda p: [int(n) for n in re.findall(r"3\.(\d+)\.(\d+)", p)[0]])
    return found or [sys.executable]


def newest_python():
    return pythons()[-1]


def python_with_gevent():
    for python in ["/usr/bin/python3", sys.executable]:
        if subprocess.call([python, "-c", "import gevent"], stderr=subprocess.DEVNULL) == 0:
            return python
    raise Failure("there is no gevent: make deps-dev")


def soak(soaking, clients, seconds):
    begin = time.monotonic()
    end, shown, steps = begin + seconds, begin, 0
    # A short run goes on until something was traced, which depends on what the random commands meet.
    while time.monotonic() < end or steps < STEPS or (
            not soaking.sums["events"] and time.monotonic() < begin + DEADLINE / 2):
        soaking.step()
        steps += 1
        check_clients(clients)
        if steps % QUIET_EVERY == 0:
            soaking.quiet()
        if time.monotonic() - shown > 60:
            shown = time.monotonic()
            print("%4d s: %d operations, %s" % (shown - begin, steps, soaking.sums), flush=True)
    soaking.quiet()
    check_memory(soaking.memory, begin, end)
    return steps


def report(soaking, clients, steps):
    print("%d operations: %s" % (steps, ", ".join("%d %s" % (n, name) for name, n in
                                                  sorted(soaking.done.items()))))
    for server in soaking.targets:
        mine = [c for c in clients if c.server is server]
        print("%s server: %d requests, all answered right, the slowest in %.0f ms" % (
            server.kind, sum(c.requests for c in mine), 1e3 * max(c.slowest for c in mine)))
    print("events: %(events)d, %(lost)d lost, %(unmatched)d unmatched" % soaking.sums, end="")
    print(" (%d of them after losses)" % soaking.explained)
    print("attaches refused because the machine was too busy: %d" % soaking.late)
    print("snapshots whose rows were added up: %d" % soaking.snapshots)
    print("frames that were suspended when tracing began: %(unseen)d" % soaking.sums)
    if not soaking.sums["events"]:
        raise Failure("nothing was traced")
    if soaking.sums["unmatched"] > soaking.explained:
        raise Failure("events fit no stack, and none were lost")
    if soaking.sums["unseen"] > soaking.begun * UNSEEN_MAX:
        raise Failure("more suspended frames were met than there can have been")


def count_files(targets):
    """Open files of each target, except those that it opens only briefly, while it starts."""
    counts = [[len(open_files(t.pid)) for t in targets]]
    for _ in range(20):
        time.sleep(0.05)
        counts.append([len(open_files(t.pid)) for t in targets])
    return [min(column) for column in zip(*counts)]


def check_files(targets, before):
    """Without clients the servers have no more files open than before."""
    end = time.monotonic() + DEADLINE
    while any(now > then for now, then in zip(count_files(targets), before)):
        if time.monotonic() > end:
            raise Failure("the servers had %s files open, now %s" % (
                before, count_files(targets)))


def run(started):
    targets = [Server("gevent", python_with_gevent()), Server("asyncio", newest_python())]
    started += [t.process for t in targets]
    stop = threading.Event()
    rng = random.Random(SEED)
    clients = [Client(t, rng.random(), stop) for t in targets for _ in range(CLIENTS)]
    files = count_files(targets)
    for client in clients:
        client.start()
    daemon = Daemon()
    started.append(daemon.process)
    soaking = Soak(daemon, targets, rng)
    steps = soak(soaking, clients, MINUTES * 60)
    stop.set()
    for client in clients:
        client.join(DEADLINE)
    check_clients(clients)
    check_files(targets, files)
    daemon.end()
    for target in targets:
        target.end()
    shutil.rmtree(daemon.dir)
    report(soaking, clients, steps)


def main():
    if os.geteuid() != 0:
        print("probes need root", file=sys.stderr)
        return 4
    started = []
    print("soak: %g minutes, seed %d" % (MINUTES, SEED), flush=True)
    try:
        run(started)
    except Failure as e:
        print("FAILED: %s" % e)
        return 1
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
