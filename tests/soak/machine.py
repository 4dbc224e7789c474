#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A machine in continuous mode: servers under load, 1,000 forks a minute, scrapes, history, two receivers.

One receiver is ClickHouse, which is killed and started again. As root: machine.py [CSV [SVG]]

Fails if a server's response is wrong, a request to the daemon fails, a counter of /metrics decreases, an
interval is at a receiver twice or not at all, or memory, files or BPF objects grow. CSV and SVG: the curves.

MACHINE_MINUTES (30), MACHINE_FORKS (1000), PYPROF_BUILD (build).
"""

import csv
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
import urllib.request

import soak
from soak import Failure

MINUTES = float(os.environ.get("MACHINE_MINUTES", "30"))
FORKS = os.environ.get("MACHINE_FORKS", "1000")
INTERVAL = 5
EVERY = 10          # seconds between two measurements
KILL_EVERY = 180    # of ClickHouse
DOWN = 20           # seconds until it starts again
DRAIN = 600         # a receiver that was down is asked again after at most 5 minutes
DATABASE = "default"
WARM = 0.3          # share of the time that is not compared
CURVES = (          # name, unit, allowed growth between the first and the last third
    ("daemon", "KiB", 16384), ("senders", "KiB", 8192), ("descriptors", "", 64),
    ("bpf_programs", "", 60), ("bpf_maps", "", 300), ("kernel_percpu", "KiB", 16384),
    ("kernel_slab", "KiB", 131072), ("slowest_ms", "ms", None),
)
CONFIG = """<?xml version="1.0"?><yandex>
<logger><level>warning</level><console>1</console></logger>
<http_port>%d</http_port><listen_host>127.0.0.1</listen_host>
<path>%s/data/</path><tmp_path>%s/tmp/</tmp_path><users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size></yandex>"""
USERS = """<?xml version="1.0"?><yandex><profiles><default/></profiles><users><default><password></password>
<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
<quotas><default/></quotas></yandex>"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(url, seconds=soak.DEADLINE):
    with urllib.request.urlopen(url, timeout=seconds) as answer:
        return answer.read()


def wait_until(what, condition, seconds=soak.DEADLINE):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(what + " took more than %d s" % seconds)
        time.sleep(0.2)


class ClickHouse:
    def __init__(self, directory):
        self.dir, self.port = os.path.join(directory, "clickhouse"), free_port()
        os.makedirs(os.path.join(self.dir, "data"))
        for name, text in (("config.xml", CONFIG % (self.port, self.dir, self.dir)),
                           ("users.xml", USERS)):
            with open(os.path.join(self.dir, name), "w") as f:
                f.write(text)
        self.process, self.kills = None, 0
        self.start()

    def start(self):
        log = open(os.path.join(self.dir, "log"), "ab")
        self.process = subprocess.Popen(
            ["clickhouse-server", "--config-file=%s/config.xml" % self.dir], cwd=self.dir,
            stdout=log, stderr=log)
        wait_until("starting ClickHouse", self.is_up)

    def is_up(self):
        try:
            return fetch("http://127.0.0.1:%d/ping" % self.port, 2) == b"Ok.\n"
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.kills += 1

    def ask(self, question):
        request = urllib.request.Request("http://127.0.0.1:%d/" % self.port, question.encode())
        with urllib.request.urlopen(request, timeout=soak.DEADLINE) as answer:
            return answer.read().decode().split()

    @property
    def url(self):
        return "clickhouse+http://127.0.0.1:%d/%s" % (self.port, DATABASE)


class Receiver:
    def __init__(self, directory):
        self.log = os.path.join(directory, "receiver.log")
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(soak.HERE, "..", "harness", "receiver.py"), self.log, "200"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = "pyroscope+http://127.0.0.1:%d" % int(self.process.stdout.readline())

    def ids(self):
        """Also checks that each request was right."""
        ids = []
        with open(self.log) as f:
            for line in f:
                record = json.loads(line)
                if record.get("error"):
                    raise Failure("a request was wrong: " + line[:400])
                ids.append(record["id"])
        return ids


class Machine:
    def __init__(self, daemon, http, clients):
        self.daemon, self.http, self.clients = daemon, "http://127.0.0.1:%d" % http, clients
        self.counters, self.rows, self.scrapes, self.profiles = {}, [], 0, 0
        self.history, self.begin = 0, time.monotonic()

    def scrape(self):
        self.scrapes += 1
        for line in fetch(self.http + "/metrics").decode().splitlines():
            found = re.fullmatch(r"(\w+_total(?:\{.*\})?) (\S+)", line)
            if not found:
                continue
            name, value = found.group(1), float(found.group(2))
            if value < self.counters.get(name, 0) and "pid=" not in name:
                raise Failure("%s: %g after %g" % (name, value, self.counters[name]))
            self.counters[name] = value

    def profile(self):
        if not fetch(self.http + "/debug/pprof/profile?seconds=2").startswith(b"\x1f\x8b"):
            raise Failure("no pprof profile")
        self.profiles += 1

    def look_back(self):
        ctl = [os.path.join(soak.BUILD, "pyprofctl"), "--socket", self.daemon.socket, "history"]
        subprocess.run(ctl + ["list", "--from", "-1min", "--json"], check=True, capture_output=True,
                       timeout=soak.DEADLINE)
        subprocess.run(ctl + ["merge", "--from", "-1min", "-f", "json"], check=True,
                       capture_output=True, timeout=soak.DEADLINE)
        self.history += 1

    def measure(self):
        slowest = max(c.slowest for c in self.clients)
        for client in self.clients:
            client.slowest = 0.0
        memory = dict(re.findall(r"^(\w+):\s+(\d+) kB", open("/proc/meminfo").read(), re.M))
        senders = children_of(self.daemon.process.pid, "pyprofd-push")
        self.rows.append((
            time.monotonic() - self.begin, self.daemon.rss_kib(), sum(map(rss_kib, senders)),
            len(soak.open_files(self.daemon.process.pid)), count_bpf("prog"), count_bpf("map"),
            int(memory["Percpu"]), int(memory["Slab"]), round(1e3 * slowest, 1)))

    def status(self):
        return json.loads(self.daemon.must(200, "GET", "/v1/status").decode())


def children_of(pid, name):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        children = [int(p) for p in f.read().split()]
    return [p for p in children if open("/proc/%d/comm" % p).read().strip() == name]


def rss_kib(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def count_bpf(what):
    out = subprocess.run(["bpftool", what, "show", "-j"], check=True, capture_output=True).stdout
    return len(json.loads(out))


def check_curves(rows):
    rows = rows[int(WARM * len(rows)):]
    third = len(rows) // 3
    if third < 2:
        print("the run is too short to compare")
        return
    for i, (name, unit, growth) in enumerate(CURVES, 1):
        first = statistics.median(r[i] for r in rows[:third])
        last = statistics.median(r[i] for r in rows[-third:])
        print("%-14s %9.0f, later %9.0f %s" % (name, first, last, unit))
        if growth is not None and last - first > growth:
            raise Failure("%s grows: %s" % (name, [r[i] for r in rows]))


def write_csv(path, rows):
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["seconds"] + [name for name, _, _ in CURVES])
        out.writerows(rows)


def polyline(rows, i, top, height, width):
    most = max(r[i] for r in rows) or 1
    span = rows[-1][0] or 1
    return " ".join("%.1f,%.1f" % (width * r[0] / span, top + height * (1 - r[i] / most))
                    for r in rows)


def write_svg(path, rows):
    """One strip per curve, from 0 to its maximum."""
    width, height, left = 640, 56, 150
    with open(path, "w") as f:
        f.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
                'font-size="12"><rect width="100%%" height="100%%" fill="#fff"/>\n' % (
                    left + width + 20, len(CURVES) * (height + 16) + 30))
        for k, (name, unit, _) in enumerate(CURVES):
            top = 8 + k * (height + 16)
            f.write('<text x="8" y="%d">%s</text><text x="8" y="%d" fill="#666">max %.0f %s</text>'
                    '<g transform="translate(%d)"><rect y="%d" width="%d" height="%d" fill="#f2f4f7"/>'
                    '<polyline points="%s" fill="none" stroke="#1f5fa8" stroke-width="1.5"/></g>\n' % (
                        top + 24, name.replace("_", " "), top + 42, max(r[k + 1] for r in rows), unit,
                        left, top, width, height, polyline(rows, k + 1, top, height, width)))
        f.write('<text x="%d" y="%d" fill="#666">%.0f minutes</text></svg>\n' % (
            left, len(CURVES) * (height + 16) + 20, rows[-1][0] / 60))


class Turns:
    """Calls functions, each once in a number of seconds."""

    def __init__(self, *turns):
        now = time.monotonic()
        self.turns = [[now + every, every, function] for every, function in turns]

    def take(self):
        for turn in self.turns:
            if time.monotonic() >= turn[0]:
                turn[0] = time.monotonic() + turn[1]
                turn[2]()
        time.sleep(0.1)


class Outages:
    def __init__(self, server):
        self.server, self.down_since = server, None
        self.turns = Turns((KILL_EVERY, self.kill))

    def kill(self):
        self.server.kill()
        self.down_since = time.monotonic()

    def take(self):
        self.turns.take()
        if self.down_since and time.monotonic() - self.down_since > DOWN:
            self.end()

    def end(self):
        if self.down_since:
            self.server.start()
        self.down_since = None


def check_receivers(machine, receiver, server):
    """Each interval that a receiver has accepted is there once; nothing was dropped."""
    pushes = {p["url"].split("+")[0]: p for p in machine.status()["pushes"]}
    for kind, p in pushes.items():
        if any(p["dropped"].values()):
            raise Failure("%s: dropped %s" % (kind, p["dropped"]))
    ids = receiver.ids()
    if len(ids) != len(set(ids)) or len(ids) != pushes["pyroscope"]["sent"]:
        raise Failure("receiver: %d requests, %d intervals, %d sent" % (
            len(ids), len(set(ids)), pushes["pyroscope"]["sent"]))
    stored = int(server.ask("SELECT uniqExact(id) FROM profiles")[0])
    counted = int(server.ask("SELECT count() FROM (SELECT id FROM profiles LIMIT 1 BY id)")[0])
    if stored != counted or stored != len(ids):
        raise Failure("ClickHouse: %d intervals, %d rows counted, %d were sent to the other receiver" % (
            stored, counted, len(ids)))
    print("intervals: %d at each receiver, %d retries, ClickHouse killed %d times" % (
        len(ids), pushes["clickhouse"]["retried"], server.kills))


def drained(machine):
    return not any(p["queued"] for p in machine.status()["pushes"])


def begin_daemon(directory, tag, receiver, server, http):
    soak.ARGS[:] = ["--continuous", "--match", tag, "--interval", str(INTERVAL), "--keep",
                    os.path.join(directory, "keep"), "--keep-size", "16M", "--http",
                    "127.0.0.1:%d" % http, "--push", receiver.url, "--push", server.url]
    return soak.Daemon()


def run(started, directory):
    tag = "machine-%d" % os.getpid()
    stop, rng, http = threading.Event(), random.Random(1), free_port()
    targets = [soak.Server("gevent", soak.python_with_gevent(), tag),
               soak.Server("asyncio", soak.newest_python(), tag)]
    churn = subprocess.Popen([soak.newest_python(), os.path.join(soak.HERE, "churn.py"), FORKS, tag],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server, receiver = ClickHouse(directory), Receiver(directory)
    started += [t.process for t in targets] + [churn, receiver.process]
    subprocess.run([os.path.join(soak.BUILD, "pyprofctl"), "fleet", "init", server.url], check=True,
                   stdout=subprocess.DEVNULL)
    clients = [soak.Client(t, rng.random(), stop) for t in targets for _ in range(soak.CLIENTS)]
    daemon = begin_daemon(directory, tag, receiver, server, http)
    started.append(daemon.process)
    for client in clients:
        client.start()
    machine, outages = Machine(daemon, http, clients), Outages(server)
    turns = Turns((1, machine.scrape), (7, machine.profile), (20, machine.look_back),
                  (EVERY, machine.measure))
    end = time.monotonic() + 60 * MINUTES
    try:
        while time.monotonic() < end:
            turns.take()
            outages.take()
            soak.check_clients(clients)
        outages.end()
        stop.set()
        for client in clients:
            client.join(soak.DEADLINE)
        churn.stdin.close()
        forks = int(churn.stdout.readline())
        for target in targets:
            target.end()
        wait_until("the last intervals", lambda: not machine.status()["continuous"]["processes"]["sampled"])
        wait_until("sending what had waited", lambda: drained(machine), DRAIN)
        check_receivers(machine, receiver, server)
        print("%d forks; %d scrapes, %d profiles, %d looks at history; %s" % (
            forks, machine.scrapes, machine.profiles, machine.history,
            json.dumps(machine.status()["continuous"]["processes"])))
        daemon.must(200, "POST", "/v1/shutdown", {})
        if daemon.process.wait(soak.DEADLINE) != 0:
            raise Failure("the daemon ended with status %d: %s" % (daemon.process.returncode,
                                                                  daemon.said()))
    finally:
        server.kill()
    return machine.rows


def main():
    if os.geteuid() != 0:
        print("probes need root", file=sys.stderr)
        return 4
    started, directory = [], tempfile.mkdtemp()
    print("machine: %g minutes, %s forks a minute" % (MINUTES, FORKS), flush=True)
    try:
        rows = run(started, directory)
        if len(sys.argv) > 1:
            write_csv(sys.argv[1], rows)
        if len(sys.argv) > 2:
            write_svg(sys.argv[2], rows)
        check_curves(rows)
    except Failure as e:
        print("FAILED: %s" % e)
        return 1
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
