#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`make bench-service`: services under load, observed in each way.

usage: service.py [OPTION]... PYPROFCTL

The services of service_apps.py get requests through --connections connections, each of which sends
the next request when it has the answer to the last one. In each round there is a recording in each
way of observing (--modes), with an undisturbed phase directly before and after it. The figures are
medians of the rounds unless stated otherwise:

- requests/s and latencies (of half and of 99 % of the requests) while the process is observed,
  according to the report, and their ratios to the two undisturbed phases around it. "attach": the
  ratio of requests/s from the command's start to its end. In the row "not at all", an undisturbed
  phase is compared with the one before it: this is what the machine varies by.
- CPU/req: the service's CPU time of a request, compared in the same way; "stated": the overhead
  that the report states.
- shares: the largest difference of a function's share of self CPU time, in points of the whole
  (functions above 2 %), from all recordings of `--mode sample --rate 999`; the worst round, and
  that function. The row "reference" has these recordings, each compared with the others.
- calls of load_all, load_item and parse_field, compared with the numbers that the service itself
  counts meanwhile: the median of relative errors; how many intervals hold the true number, of all
  rounds; and how many numbers are unknown or have errors larger than they are (`?`; they are not
  among the others). An interval is 1.96 standard errors, what is in flight at its ends, and what
  passes in the time that attaching takes.
- calls per call: the same of load_item per load_all and parse_field per load_item.
- whether recordings of --short seconds, by default, contain each function above 5 % of CPU time,
  and with an error.

Exits with 0 unless a program fails, whatever the figures are.
"""
import argparse
import array
import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from service_apps import FIELDS, ITEMS, LOADS, MOST, PID, SLOTS, open_progress
from windows import Readings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from patience import hit_us  # noqa: E402

LOOK = 0.005
EDGE = 0.1  # seconds: attaching takes less, also on a machine with other load
START = 60  # seconds: a program that has not started by then has failed
MORE = 300  # seconds that a recording may take besides its duration
REFERENCE = ['--mode', 'sample', '--rate', '999']
MODES = {
    'default': [],
    'max-overhead 5': ['--max-overhead', '5'],
    'max-overhead 20': ['--max-overhead', '20'],
    'sample': ['--mode', 'sample'],
    'count': ['--mode', 'count'],
    'exact': ['--exact'],
}
NO_COUNTS = 'not at all', 'sample', 'reference'
GUNICORN = ['-m', 'gunicorn', '--workers', '1', '--threads', '4', '--log-level', 'warning',
            '--keep-alive', '60', '--chdir', HERE, '--bind']
PROGRAMS = {
    'flask': lambda socket: GUNICORN + ['unix:' + socket, 'service_apps:flask_app()'],
    'aiohttp': lambda socket: [os.path.join(HERE, 'service_apps.py'), 'aiohttp', socket],
    'django': lambda socket: GUNICORN + ['unix:' + socket, 'service_apps:django_app()'],
}
COUNTED = {'load_all': LOADS, 'load_item': ITEMS, 'parse_field': FIELDS}
PAIRS = [('load_all', 'load_item'), ('load_item', 'parse_field')]
LARGE, SHORT_LARGE = 0.02, 0.05  # shares of CPU time


# ---- the load ----

async def send_requests(path, seed, log, ended):
    draw = random.Random(seed)
    while not ended.is_set():
        reader, writer = await asyncio.open_unix_connection(path)
        head = b''
        while not ended.is_set() and b'connection: close' not in head:
            begin = time.monotonic_ns()
            number = draw.randint(20, MOST - 7)
            writer.write(b'GET /items/%d HTTP/1.1\r\nHost: bench\r\n\r\n' % number)
            head = (await reader.readuntil(b'\r\n\r\n')).lower()
            if b' 200 ' not in head.split(b'\r\n')[0]:
                raise SystemExit(head.decode('latin-1'))
            await reader.readexactly(int(re.search(rb'content-length: *(\d+)', head).group(1)))
            end = time.monotonic_ns()
            log.extend((end, end - begin))
        writer.close()


async def load(path, connections, out):
    """Until standard input ends; then writes when each request ended and its latency, in ns."""
    log, ended = array.array('Q'), asyncio.Event()

    async def wait_for_end():
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        ended.set()
    await asyncio.gather(wait_for_end(), *(send_requests(path, seed, log, ended)
                                           for seed in range(int(connections))))
    with open(out, 'wb') as f:
        log.tofile(f)


# ---- one service ----

class Service:
    """A service under load while this is entered. Afterwards, `requests` are the load's."""

    def __init__(self, python, name, connections):
        self.directory = tempfile.TemporaryDirectory()
        progress, self.socket, self.log, self.out = (
            os.path.join(self.directory.name, f) for f in ('progress', 'socket', 'log', 'out.json'))
        with open(progress, 'wb') as f:
            f.write(bytes(8 * SLOTS))
        self.progress = open_progress(progress)
        self.commands = [
            [python] + PROGRAMS[name](self.socket),
            [sys.executable, __file__, '--load', self.socket, str(connections), self.log]]
        self.environment = dict(os.environ, BENCH_PROGRESS=progress, PYTHONDONTWRITEBYTECODE='1',
                                PYTHONPATH='')
        self.processes, self.requests = [], []

    def __enter__(self):
        try:
            self.start(lambda: self.progress[PID] and os.path.exists(self.socket))
            self.start(lambda: self.progress[LOADS])
        except BaseException:
            self.end()
            raise
        # The process's CPU time: CPUCLOCK_SCHED, as the kernel's headers for posix-timers have it.
        clock = (~self.progress[PID] << 3) | 2
        self.readings = Readings(
            lambda: [*self.progress[:PID], time.clock_gettime_ns(clock)], LOOK)
        return self

    def __exit__(self, kind, *_):
        self.readings.end()
        try:
            self.processes[1].communicate(timeout=START)
            if kind is None and self.processes[1].returncode:
                raise SystemExit('the load failed')
        finally:
            self.end()

    def start(self, has_started):
        process = subprocess.Popen(self.commands[len(self.processes)], stdin=subprocess.PIPE,
                                   env=self.environment)
        self.processes.append(process)
        end = time.monotonic() + START
        while not has_started():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit('did not start: %s' % ' '.join(process.args))
            time.sleep(0.05)

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()
        if os.path.exists(self.log):
            log = array.array('Q')
            with open(self.log, 'rb') as f:
                log.frombytes(f.read())
            self.requests = list(zip(log[::2], log[1::2]))
        self.directory.cleanup()

    def rest(self, seconds):
        """An undisturbed phase: when it was."""
        time.sleep(0.2)
        begin = time.monotonic_ns()
        time.sleep(seconds)
        return begin, time.monotonic_ns()

    def record(self, ctl, seconds, options):
        """The report, and when the command ran."""
        begin = time.monotonic_ns()
        done = subprocess.run(
            [ctl, 'record', '--pid', str(self.progress[PID]), '-d', str(seconds), '--yes',
             '-o', self.out] + options,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            timeout=seconds + MORE, env=dict(os.environ, PYPROFD_SOCKET=self.socket + '.pyprofd'))
        command = begin, time.monotonic_ns()
        if done.returncode:
            raise SystemExit('record %s: %s' % (' '.join(options), done.stderr))
        if any(process.poll() is not None for process in self.processes):
            raise SystemExit('the service or its load has ended')
        with open(self.out) as f:
            return Report(json.load(f)), command


# ---- the content of a phase and of a report ----

class Phase:
    def __init__(self, service, begin, end):
        self.latencies = sorted(ns for at, ns in service.requests if begin <= at <= end)
        self.seconds = (end - begin) / 1e9
        self.rate = len(self.latencies) / self.seconds
        *self.counts, cpu = service.readings.between(begin, end)
        self.loads = max(1, self.counts[LOADS])
        self.cpu = cpu / self.loads


def quantile(latencies, part):
    return latencies[int(part * (len(latencies) - 1))] if latencies else float('nan')


class Report:
    def __init__(self, report):
        self.rows, self.edges, self.exact = (report[k] for k in ('functions', 'edges', 'exact'))
        target = report['targets'][0]
        # end_ns may be later: after the last probe, the undisturbed program's speed is measured.
        self.begin = target['start_ns']
        self.end = self.begin + (target['windows']['span_ns'] if 'windows' in target else
                                 target['traced_ns'])
        self.stated = target['overhead'].get('ratio')
        self.times, self.without_error = {}, set()
        for row in self.rows:
            if not row['pseudo']:
                key = os.path.basename(row['file']), row['line'], row['name']
                self.times[key] = self.times.get(key, 0) + row['tottime']['cpu']
                if row.get('error', {}).get('tottime', {}).get('cpu') is None:
                    self.without_error.add(key)

    def calls(self, name):
        """Number and standard error; None: unknown."""
        rows = [r for r in self.rows if r['name'] == name]
        calls = sum(r['ncalls'] for r in rows)
        errors = [0 if self.exact else r.get('error', {}).get('ncalls') for r in rows]
        if not calls or None in errors or sum(errors) > calls:
            return None
        return calls, sum(e * e for e in errors) ** 0.5

    def calls_per_call(self, pair):
        """The same of (caller, callee)."""
        for edge in self.edges:
            if edge['caller'] is not None and pair == (
                    self.rows[edge['caller']]['name'], self.rows[edge['callee']]['name']):
                value, error = edge.get('calls_per_call'), edge.get('calls_per_call_error')
                if value is not None and (self.exact or error is not None):
                    return value, error or 0
        return None

    def all_calls(self):
        return sum(r['ncalls'] for r in self.rows if not r['pseudo'])


def shares_of(reports):
    """By function; {}: the reports have no times."""
    total = {}
    for report in reports:
        for key, ns in report.times.items():
            total[key] = total.get(key, 0) + ns
    whole = sum(total.values())
    return {key: ns / whole for key, ns in total.items()} if whole else {}


def worst_share(report, reference):
    """In points, and the function's name; None: no times."""
    shares = shares_of([report])
    return max(((100 * abs(shares.get(key, 0) - share), key[2])
                for key, share in reference.items() if share > LARGE and shares), default=None)


class Estimates:
    """Figures beside the true ones: relative errors, and intervals that hold."""

    def __init__(self):
        self.errors, self.holds, self.unknown = [], 0, 0

    def add(self, figure, true, at_ends):
        """at_ends: the part of the true number that may or may not be in the report."""
        if figure is None:
            self.unknown += 1
        elif true:
            self.errors.append(abs(figure[0] / true - 1))
            self.holds += abs(figure[0] - true) <= 1.96 * figure[1] + at_ends * true

    def plus(self, other):
        both = Estimates()
        both.errors, both.holds = self.errors + other.errors, self.holds + other.holds
        both.unknown = self.unknown + other.unknown
        return both

    def text(self):
        median = '%.1f %%' % (100 * statistics.median(self.errors)) if self.errors else '-'
        return '%s, %d of %d, %d ?' % (median, self.holds, len(self.errors), self.unknown)


# ---- the table ----

HEAD = '%-15s %10s %6s %6s %7s %7s %6s %9s %8s  %-29s %-22s %s' % (
    '', 'requests/s', 'ratio', 'attach', 'p50 ms', 'p99 ms', 'ratio', 'CPU/req', 'stated',
    'shares, worst', 'calls', 'calls per call')


class Row:
    """One way of observing a service, in all rounds."""

    def __init__(self, name):
        self.name, self.values = name, {}
        self.stated, self.shares, self.hits = [], [], []
        self.calls, self.per_call = Estimates(), Estimates()

    def compare(self, kind, value, undisturbed):
        self.values.setdefault(kind, []).append((value, value / (undisturbed or float('nan'))))

    def add_phase(self, phase, around):
        latencies = sorted(ns for p in around for ns in p.latencies)
        self.compare('rate', phase.rate, statistics.mean(p.rate for p in around))
        self.compare('p50', quantile(phase.latencies, 0.5), quantile(latencies, 0.5))
        self.compare('p99', quantile(phase.latencies, 0.99), quantile(latencies, 0.99))
        self.compare('cpu', phase.cpu, statistics.mean(p.cpu for p in around))

    def add_report(self, report, phase, around, reference, connections):
        if report.stated is not None:
            self.stated.append(100 * report.stated)
        worst = worst_share(report, reference)
        self.shares += [worst] if worst else []
        in_flight = (connections + 2) / phase.loads
        for name, slot in COUNTED.items():
            self.calls.add(report.calls(name), phase.counts[slot], in_flight + EDGE / phase.seconds)
        for pair in PAIRS:
            caller, callee = (phase.counts[COUNTED[name]] for name in pair)
            self.per_call.add(report.calls_per_call(pair), callee / max(1, caller), in_flight)
        if report.all_calls():
            more = phase.cpu - statistics.mean(p.cpu for p in around)
            self.hits.append(more * phase.loads / report.all_calls())

    def value(self, kind):
        return statistics.median(value for value, _ in self.values[kind])

    def ratio(self, kind):
        return statistics.median(ratio for _, ratio in self.values[kind])

    def text(self):
        line = '%-15s %10.0f %6.2f %6s %7.1f %7.1f %6.2f %+7.1f %%' % (
            self.name, self.value('rate'), self.ratio('rate'),
            '%.2f' % self.ratio('attach') if 'attach' in self.values else '',
            self.value('p50') / 1e6, self.value('p99') / 1e6, self.ratio('p99'),
            100 * (self.ratio('cpu') - 1))
        if 'attach' in self.values:
            line += ' %8s  %-29s' % (
                '%.1f %%' % statistics.median(self.stated) if self.stated else '-',
                '%.1f points (%s)' % max(self.shares) if self.shares else '-')
            if self.name not in NO_COUNTS:
                line += ' %-22s %s' % (self.calls.text(), self.per_call.text())
        return line.rstrip()


def rows_of(service, rests, recordings, connections):
    """recordings[i], (way, report, when the command ran), is between rests[i] and rests[i + 1]."""
    undisturbed = [Phase(service, *rest) for rest in rests]
    rows = {'not at all': Row('not at all')}
    for before, after in zip(undisturbed, undisturbed[1:]):
        rows['not at all'].add_phase(after, [before])
    references = [report for way, report, _ in recordings if way == 'reference']
    for i, (way, report, command) in enumerate(recordings):
        row = rows.setdefault(way, Row(way))
        phase, around = Phase(service, report.begin, report.end), undisturbed[i:i + 2]
        row.add_phase(phase, around)
        row.compare('attach', Phase(service, *command).rate,
                    statistics.mean(p.rate for p in around))
        row.add_report(report, phase, around, shares_of(r for r in references if r is not report),
                       connections)
    return rows


def short_text(seconds, report, reference):
    large = [key for key, share in reference.items() if share > SHORT_LARGE]
    missing = [key[2] for key in large if not report.times.get(key)]
    bare = [key[2] for key in large if report.times.get(key) and key in report.without_error]
    return 'default, %g s: %d of %d functions above 5 %%%s; %s; worst share %s' % (
        seconds, len(large) - len(missing), len(large),
        ', without ' + ', '.join(missing) if missing else '',
        'no error of ' + ', '.join(bare) if bare else 'each with its error',
        '%.1f points (%s)' % (worst_share(report, reference) or (float('nan'), '-')))


def measure(name, options):
    ways = [('reference', REFERENCE)]
    ways = ways + [(mode, MODES[mode]) for mode in options.modes] + ways
    rests, recordings, shorts = [], [], []
    with Service(options.python, name, options.connections) as service:
        # The self-test of this interpreter, whose outcome is kept.
        service.record(options.pyprofctl, 0.5, ['--mode', 'trace', '--max-overhead', '5'])
        for _ in range(options.rounds):
            for way, arguments in ways:
                rests.append(service.rest(options.rest))
                recordings.append(
                    (way, *service.record(options.pyprofctl, options.seconds, arguments)))
        rests.append(service.rest(options.rest))
        for seconds in options.short:
            shorts.append((seconds, service.record(options.pyprofctl, seconds, [])[0]))
    rows = rows_of(service, rests, recordings, options.connections)
    reference = shares_of(report for way, report, _ in recordings if way == 'reference')
    print('\n%s, %d connections:' % (name, options.connections))
    print(HEAD)
    for row in rows.values():
        print(row.text())
    for seconds, report in shorts:
        print(short_text(seconds, report, reference))
    if 'count' in rows and rows['count'].hits:
        print('a call in mode count, which is one hit: %.2f us'
              % (statistics.median(rows['count'].hits) / 1e3))
    sys.stdout.flush()
    return rows


def pooled(rows):
    """Calls, and calls per call, of all programs."""
    calls, per_call = Estimates(), Estimates()
    for row in rows:
        calls, per_call = calls.plus(row.calls), per_call.plus(row.per_call)
    return calls.text(), per_call.text()


def summary(way, rows):
    """Of one way, in all programs."""
    text = '%-15s least ratio of requests/s %.2f, largest of p99 %.2f' % (
        way, min(r.ratio('rate') for r in rows), max(r.ratio('p99') for r in rows))
    shares = [worst for r in rows for worst in r.shares]
    if shares:
        text += ', worst share %.1f points' % max(shares)[0]
    if way not in NO_COUNTS:
        text += '; calls %s; calls per call %s' % pooled(rows)
    return text


def markdown(way, rows):
    """The row in packaging/doc/overhead.md: figures of each program, counts of all together."""
    def each(form, values):
        return ' · '.join(form % v if v is not None else '–' for v in values)
    return '| %s |' % ' | '.join([
        way if way == 'not at all' else '`%s`' % way,
        each('%.2f', [r.ratio('rate') for r in rows]),
        each('%.2f', [r.ratio('p99') for r in rows]),
        each('%+.0f', [100 * (r.ratio('cpu') - 1) for r in rows]),
        each('%.1f', [statistics.median(r.stated) if r.stated else None for r in rows]),
        each('%.1f', [max(r.shares)[0] if r.shares else None for r in rows]),
        *(pooled(rows) if way not in NO_COUNTS else ('–', '–'))])


def listed(of=None, kind=str):
    def parse(text):
        values = [kind(part) for part in text.split(',') if part]
        if of and not set(values) <= set(of):
            raise argparse.ArgumentTypeError('expected some of ' + ','.join(of))
        return values
    return parse


def parse_options():
    parser = argparse.ArgumentParser(description='Services under load, observed in each way.')
    add = parser.add_argument
    add('--programs', type=listed(PROGRAMS), default=list(PROGRAMS), metavar='LIST',
        help='of %s (default: all)' % ','.join(PROGRAMS))
    add('--modes', type=listed(MODES), default=[m for m in MODES if m != 'max-overhead 20'],
        metavar='LIST', help="of '%s' (default: all but 'max-overhead 20')" % ','.join(MODES))
    add('--seconds', type=float, default=10, help='of a recording (default: 10)')
    add('--rest', type=float, help='seconds of an undisturbed phase (default: half of a recording)')
    add('--rounds', type=int, default=3, help='default: 3')
    add('--short', type=listed(kind=float), default=[1, 2, 4], metavar='LIST',
        help='seconds of the short recordings (default: 1,2,4)')
    add('--connections', type=int, default=4, help='default: 4')
    add('--python', default='/usr/bin/python3', help='default: /usr/bin/python3')
    add('--hits-slower', type=int, default=0, metavar='NS',
        help='HITS_SLOWER_NS of the build of PYPROFCTL, to be printed')
    add('--markdown', action='store_true', help='at the end, print the rows of overhead.md, too')
    add('pyprofctl', metavar='PYPROFCTL')
    options = parser.parse_args()
    options.rest = options.rest or max(2, options.seconds / 2)
    return options


def main():
    if sys.argv[1:2] == ['--load']:
        asyncio.run(load(*sys.argv[2:]))
        return
    options = parse_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(subprocess.run([options.python, '-VV'], check=True, stdout=subprocess.PIPE,
                         text=True).stdout.strip())
    slower = ' + %.1f us emulated' % (options.hits_slower / 1e3) if options.hits_slower else ''
    print('a hit of an empty probe: %.2f us%s; %d CPUs' % (hit_us(), slower, os.cpu_count()),
          flush=True)
    with tempfile.TemporaryDirectory() as cache:
        # The measured costs of the usual build are not those of this one, and the other way round.
        if options.hits_slower:
            os.environ['XDG_CACHE_HOME'] = cache
        programs = [measure(name, options) for name in options.programs]
    print('\nall programs:')
    for text in [summary] + [markdown] * options.markdown:
        for way in programs[0]:
            print(text(way, [rows[way] for rows in programs]))


if __name__ == '__main__':
    main()
