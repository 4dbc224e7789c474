#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`make bench-windows`: the accuracy of counts under --max-overhead, and whether the limit holds.

usage: windows.py PYPROFCTL PYTHON SECONDS RUNS [PROGRAM ...]

Five programs with known numbers of calls: they store the number of rounds, and their CPU time,
in a file that is read while they are recorded. For each run there are

- the number of calls as reported, with its error, and the true one between the report's beginning and
  its end. Reports whose error is unknown, or larger than the number, state no number in `text`; how many
  there were is printed, and bias and intervals are of the others;
- the CPU time of each span of 2 s, divided by that of as many untraced rounds before and after. The
  same for untraced spans shows the variation caused by the machine;
- what hits take of each span: how often the kernel says that programs ran, times the time that a hit
  takes from this program. A trace of it shows that time: the CPU time of a round, of an untraced one,
  and two hits per call. This varies less with the machine, but does not include attaching and detaching.
"""
import json
import mmap
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BOUND = 5  # percent
SPAN = 2.0  # seconds
LOOK = 0.005
LOOK_HITS = 0.05
FIND = 0.3
UNDISTURBED = 3.0
TRACED = 5.0
KPROBE = '2'  # as fdinfo says: BPF_PROG_TYPE_KPROBE, also of uprobes
LEAVES = 40  # of a round
SLOTS = 6
WORKERS = 2


# ---- the programs ----

def leaf(n):
    total = 0
    for i in range(n):
        total += i
    return total


def handle():
    for i in range(LEAVES):
        leaf(i)


def loops():
    return sum(range(100000))


class Progress:
    """Rounds and their CPU time, of each kind and each process."""

    def __init__(self, path):
        with open(path, 'r+b') as f:
            self.slots = memoryview(mmap.mmap(f.fileno(), 16 * SLOTS)).cast('Q')

    def count(self, slot, work, times=1):
        begin = time.process_time_ns()
        for _ in range(times):
            work()
        self.slots[2 * slot + 1] += time.process_time_ns() - begin
        self.slots[2 * slot] += times

    def read(self):
        return list(self.slots)


def busy(progress):
    while True:
        progress.count(0, handle)


def sleeping(progress):
    while True:
        progress.count(0, handle, 40)
        time.sleep(0.02)


def bursty(progress):
    draw = random.Random(1)
    while True:
        for slot, work, mean in (0, handle, 0.3), (1, loops, 1.0):
            end = time.monotonic() + draw.expovariate(1 / mean)
            while time.monotonic() < end:
                progress.count(slot, work)


def server(progress):
    """Requests come at random times; a thread of the same program sends them, and waits."""
    draw, requests = random.Random(2), os.pipe()

    def client():
        while True:
            time.sleep(draw.expovariate(1 / 0.01))
            os.write(requests[1], b'.')
    threading.Thread(target=client, daemon=True).start()
    while os.read(requests[0], 1):
        progress.count(0, handle, 20)


def prefork(progress):
    sys.stdin.readline()
    for slot in range(WORKERS):
        if os.fork() == 0:
            while os.getppid() != 1:
                progress.count(slot, handle, 20)
                time.sleep(0.01)
            os._exit(0)
    time.sleep(1000)


PROGRAMS = {f.__name__: f for f in (busy, sleeping, prefork, bursty, server)}


# ---- measurement ----

class Readings(threading.Thread):
    """What read() returns, a list of numbers that grow, over time."""

    def __init__(self, read, pause):
        super().__init__(daemon=True)
        self.read, self.pause, self.seen, self.on = read, pause, [], True
        self.start()

    def run(self):
        while self.on:
            self.seen.append((time.monotonic_ns(), self.read()))
            time.sleep(self.pause)

    def end(self):
        self.on = False
        self.join()

    def at(self, ns):
        """Interpolated between two readings."""
        for (t0, before), (t1, after) in zip(self.seen, self.seen[1:]):
            if t0 <= ns <= t1:
                part = (ns - t0) / ((t1 - t0) or 1)
                return [a + part * (b - a) for a, b in zip(before, after)]
        return self.seen[-1][1] if ns > self.seen[-1][0] else self.seen[0][1]

    def between(self, begin, end):
        return [b - a for a, b in zip(self.at(begin), self.at(end))]


class Run:
    """A program, and its progress over time."""

    def __init__(self, python, name):
        self.file = tempfile.NamedTemporaryFile()
        self.file.write(bytes(16 * SLOTS))
        self.file.flush()
        self.process = subprocess.Popen([python, __file__, '--program', name, self.file.name],
                                        stdin=subprocess.PIPE)
        self.readings = Readings(Progress(self.file.name).read, LOOK)

    def go(self):
        self.process.stdin.write(b'\n')
        self.process.stdin.flush()

    def end(self):
        self.readings.end()
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


class Hits:
    """How often the uprobe programs of `record`'s daemon have run, according to the kernel."""

    def __init__(self, pid):
        self.children, self.daemon = '/proc/%d/task/%d/children' % (pid, pid), None
        self.fds, self.counts, self.next = [], {}, 0

    def find(self):
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + FIND
        self.daemon = self.daemon or (read_file(self.children).split() or [None])[0]
        fds = '/proc/%s/fd' % self.daemon
        self.fds = ['%sinfo/%s' % (fds, fd) for fd in ls(fds)
                    if 'bpf-prog' in read_link(os.path.join(fds, fd))]

    def read(self):
        self.find()
        for path in self.fds:
            info = dict(re.findall(r'^(\w+):\t(.*)$', read_file(path), re.M))
            if info.get('prog_type') == KPROBE:
                self.counts[info['prog_id']] = int(info['run_cnt'])
        return [sum(self.counts.values())]


def or_none(of):
    def get(path):
        try:
            return of(path)
        except OSError:
            return ''
    return get


def read_all(path):
    with open(path) as f:
        return f.read()


ls, read_link, read_file = or_none(os.listdir), or_none(os.readlink), or_none(read_all)


def write_stats(text):
    """Whether the kernel counts; returns what was there."""
    with open('/proc/sys/kernel/bpf_stats_enabled', 'r+') as f:
        before = f.read()
        f.seek(0)
        f.write(text)
    return before


def add(a, b):
    return [x + y for x, y in zip(a, b)]


def costs_of(spans):
    """CPU time of a round, by kind; over all these spans."""
    total = [0] * (2 * SLOTS)
    for span in spans:
        total = add(total, span)
    return [total[i + 1] / total[i] if total[i] else 0 for i in range(0, 2 * SLOTS, 2)]


def untraced(span, costs):
    """The CPU time that these rounds would have taken."""
    return sum(span[2 * i] * cost for i, cost in enumerate(costs))


def slower(span, costs):
    """The slowdown of these rounds compared with untraced ones, in percent; None: no rounds."""
    expected = untraced(span, costs)
    return 100 * (sum(span[1::2]) / expected - 1) if expected else None


def spans_of(readings, begin, end):
    step = int(SPAN * 1e9 / 4)
    return [readings.between(t, t + 4 * step)
            for t in range(int(begin), int(end) - 4 * step + 1, step)]


class Recording:
    """`record` of a process, and the hits meanwhile."""

    def __init__(self, ctl, pid, seconds, options):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, 'out.json')
        self.process = subprocess.Popen([ctl, 'record', '--pid', str(pid), '-d', str(seconds), '-o',
                                         self.path] + options, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.hits = Readings(Hits(self.process.pid).read, LOOK_HITS)

    def end(self):
        """Returns the report."""
        assert self.process.wait() == 0
        self.hits.end()
        with open(self.path) as f:
            report = json.load(f)
        self.directory.cleanup()
        return report


def error_of(rows):
    """One standard error of their calls; None: unknown according to the report."""
    errors = [r.get('error', {}).get('ncalls') for r in rows]
    return None if None in errors else sum(e ** 2 for e in errors) ** 0.5


def record(ctl, python, name, seconds, options):
    """A program, its recording and report; when it was recorded and when it ran undisturbed."""
    run, forks = Run(python, name), name == 'prefork'
    if not forks:
        time.sleep(UNDISTURBED)
    recording = Recording(ctl, run.process.pid, seconds,
                          options + (['--follow-children'] if forks else []))
    if forks:
        time.sleep(1)
        run.go()
    begin = time.monotonic_ns()
    report = recording.end()
    start = min(t['start_ns'] for t in report['targets'])
    end = max(t['end_ns'] for t in report['targets'])
    time.sleep(UNDISTURBED)
    run.end()
    undisturbed = [(end + 100e6, run.readings.seen[-1][0])]
    if not forks:
        undisturbed.append((begin - UNDISTURBED * 1e9, begin - 10e6))
    return run.readings, recording.hits, report, (start, end), undisturbed


def hit_ns(ctl, python, name):
    """The time that a hit takes from this program."""
    progress, _, report, traced, undisturbed = record(ctl, python, name, TRACED,
                                                      ['--exact', '--yes', '--rate', '0'])
    costs = costs_of(progress.between(*times) for times in undisturbed)
    during = progress.between(*traced)
    hits = 2 * sum(r['ncalls'] for r in report['functions'])
    return (sum(during[1::2]) - untraced(during, costs)) / hits


def measure(ctl, python, name, seconds):
    """A run: reported calls, their error, the true calls; untraced spans, and the others."""
    progress, hits, report, (start, end), undisturbed = record(ctl, python, name, seconds,
                                                               ['--max-overhead', str(BOUND)])
    rows = [r for r in report['functions'] if r['name'] == 'handle']
    return {
        'calls': sum(r['ncalls'] for r in rows),
        'error': error_of(rows),
        'true': sum(progress.between(start, end)[0:(2 * WORKERS if name == 'prefork' else 2):2]),
        'undisturbed': [s for times in undisturbed for s in spans_of(progress, *times)],
        'spans': spans_of(progress, start, end),
        'hits': [n for n, in spans_of(hits, start, end)],
    }


def taken_by_hits(span, hits, ns):
    """In percent of the program's own CPU time; None: it had none."""
    own = sum(span[1::2]) - hits * ns
    return 100 * hits * ns / own if own > 0 else None


def part(values, most):
    return 100 * sum(x > most for x in values) / (len(values) or 1)


def summary(name, runs, ns):
    costs = costs_of([s for r in runs for s in r['undisturbed']])
    taken = [x for r in runs for x in (slower(s, costs) for s in r['spans']) if x is not None]
    noise = [x for r in runs for x in (slower(s, costs) for s in r['undisturbed'])
             if x is not None]
    by_hits = [x for r in runs for x in (taken_by_hits(s, n, ns)
                                         for s, n in zip(r['spans'], r['hits'])) if x is not None]
    known = [r for r in runs if r['error'] is not None and r['error'] <= r['calls']]
    within = sum(abs(r['calls'] - r['true']) <= 1.96 * r['error'] + 1 for r in known)
    errors = [r['error'] / r['true'] for r in known if r['true']] or [float('nan')]
    bias = (sum(r['calls'] for r in known) / sum(r['true'] for r in known) - 1
            if known else float('nan'))
    return ('%-9s %d of %d intervals hold the true count (too little shown in %d runs); bias %+.1f '
            '%%, error %.1f %%; slower by %.1f %%, over %.1f %% in %.0f %% of spans (undisturbed '
            'spans: over %.1f %% in %.0f %%); by hits of %.0f ns: %.1f %%, over %.1f %% in %.0f %% '
            'of spans'
            % (name, within, len(known), len(runs) - len(known), 100 * bias,
               100 * statistics.median(errors), statistics.mean(taken), 1.3 * BOUND,
               part(taken, 1.3 * BOUND), 0.3 * BOUND, part(noise, 0.3 * BOUND), ns,
               statistics.mean(by_hits), 1.3 * BOUND, part(by_hits, 1.3 * BOUND)))


def measure_runs(ctl, python, name, seconds, times):
    counted = write_stats('1')
    try:
        return [measure(ctl, python, name, seconds) for _ in range(times)]
    finally:
        write_stats(counted)


def main():
    if sys.argv[1] == '--program':
        PROGRAMS[sys.argv[2]](Progress(sys.argv[3]))
    ctl, python, seconds, times = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    print(subprocess.run([python, '-VV'], check=True, stdout=subprocess.PIPE,
                         text=True).stdout.strip())
    for name in sys.argv[5:] or PROGRAMS:
        ns = hit_ns(ctl, python, name)
        runs = measure_runs(ctl, python, name, seconds, times)
        for r in runs:
            print('  %-9s %9.0f calls, %9.0f +- %s reported' % (
                name, r['true'], r['calls'],
                'unknown' if r['error'] is None else '%.0f' % r['error']))
        print(summary(name, runs, ns), flush=True)


if __name__ == '__main__':
    main()
