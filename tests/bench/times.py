#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`make bench-times`: the accuracy of times, by mode, compared with samples of the untraced program.

usage: times.py PYPROFCTL PYTHON SECONDS [PROGRAM ...]

For each program of programs.py: the reference is mode sample on the running program, before any probe
and again afterwards; the difference of the two is noise. Each mode is measured three times. There are

- the largest difference of a function's share of tottime from the reference, in points of the whole
  (functions above 1 %), and that function: the median of the three;
- the sum of tottime divided by the CPU time of as many rounds of the untraced program, which is
  measured directly before and after each time, of all three. The number of rounds is the report's, if
  it is exact, or else what the program shows;
- how much the CPU time of an untraced round differed between directly before and after, at most: by
  that the machine's speed has changed;
- the functions above 1 % whose share is within two standard errors of the reference, each time.

With "idle", the program idles at the attach and for a second more. Where samples carry the times, the sum is then
divided by the process's CPU time less what hits took, by the samples that fell on probes.
"""
import json
import math
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RATE = '999'
BESIDE = 1.0  # seconds
LOOK = 0.002
TIMES = 3
RATIO = 0.1  # the ratio of sums should be 1 within this
SAMPLE = ['--mode', 'sample', '--rate', RATE]
WAYS = {
    'trace': ['--exact', '--yes'],
    'count+samples': ['--mode', 'count', '--yes', '--rate', RATE],
    'default': [],
    'max-overhead 5': ['--max-overhead', '5'],
}
IDLE_WAYS = {
    'default, idle': [],
    'exact, idle': ['--exact', '--yes'],
    'sample, idle': SAMPLE,
}
IDLE = 1.0  # seconds, besides what attaching takes
CPROFILE = """
import cProfile, json, sys, time
sys.path.insert(0, sys.argv[1])
import programs
work, end = programs.PROGRAMS[sys.argv[2]], time.process_time() + float(sys.argv[3])
profile = cProfile.Profile(builtins=False)
profile.enable()
while time.process_time() < end:
    work()
profile.disable()
profile.create_stats()
print(json.dumps([[list(key), row[1], row[2]] for key, row in profile.stats.items()]))
"""


class Figures:
    """The figures of one mode about a program. Functions are identified by file name, line and name."""

    def __init__(self):
        self.tottime, self.variance, self.rounds, self.own_cpu = {}, {}, 0, 0
        self.has_errors = False

    def add(self, key, tottime, error=None):
        self.tottime[key] = self.tottime.get(key, 0) + tottime
        if error is not None:
            self.has_errors = True
            self.variance[key] = self.variance.get(key, 0) + error * error

    def share(self, key):
        return self.tottime.get(key, 0) / (sum(self.tottime.values()) or 1)

    def error(self, key):
        return math.sqrt(self.variance.get(key, 0)) / (sum(self.tottime.values()) or 1)

    def plus(self, other):
        both = Figures()
        for figures in self, other:
            for key, tottime in figures.tottime.items():
                both.add(key, tottime, math.sqrt(figures.variance.get(key, 0)))
        return both


def read_report(path, name, rounds):
    figures = Figures()
    with open(path) as f:
        report = json.load(f)
    for row in report['functions']:
        if row['pseudo']:
            continue
        key = os.path.basename(row['file']), row['line'], row['name']
        error = row.get('error', {}).get('tottime', {}).get('cpu')
        figures.add(key, row['tottime']['cpu'], error)
        if row['name'] == name:
            figures.rounds += row['ncalls']
    target = report['targets'][0]
    estimate, overhead = target['estimate'], target['overhead']
    figures.own_cpu = overhead['own_cpu_ns'] + overhead['overhead_ns'] - (
        estimate.get('samples_of_probes', 0) * estimate['period_ns'])
    if 'windows' in target:
        figures.rounds = rounds.between(target['start_ns'], target['end_ns'])
    return figures


class Rounds(threading.Thread):
    """How many rounds a program has made at which time, while this is entered."""

    def __init__(self, program):
        super().__init__(daemon=True)
        self.program, self.seen, self.ended = program, [], threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *why):
        self.ended.set()
        self.join()

    def run(self):
        while not self.ended.wait(LOOK):
            self.seen.append((time.monotonic_ns(), self.program.read_progress()[0]))

    def between(self, begin_ns, end_ns):
        at = [rounds for ns, rounds in self.seen if begin_ns <= ns <= end_ns]
        return at[-1] - at[0] if at else 0


class Program:
    def __init__(self, python, name):
        self.name = name
        with tempfile.NamedTemporaryFile() as f:
            f.write(bytes(32))
            f.flush()
            self.progress = memoryview(mmap.mmap(f.fileno(), 32)).cast('Q')
            self.process = subprocess.Popen(
                [python, os.path.join(HERE, 'programs.py'), name, f.name],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert self.process.stdout.readline() == 'ready\n'

    def end(self):
        self.process.communicate()

    def read_progress(self):
        """Rounds, and CPU time at the end of the last one, ns."""
        while True:
            after, cpu, rounds = self.progress[2], self.progress[1], self.progress[0]
            if rounds == after:
                return rounds, cpu

    def round_ns(self, seconds):
        """Current CPU time of a round, untraced."""
        begin = self.read_progress()
        time.sleep(seconds)
        end = self.read_progress()
        return (end[1] - begin[1]) / ((end[0] - begin[0]) or 1)

    def record(self, ctl, seconds, options, idle=0.0):
        """idle: for so many seconds, it does not run."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'out.json')
            self.progress[3] = idle > 0
            with Rounds(self) as rounds:
                recorder = subprocess.Popen(
                    [ctl, 'record', '--pid', str(self.process.pid), '-d', str(seconds + idle),
                     '-o', path] + options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(idle)
                self.progress[3] = 0
                assert recorder.wait() == 0
            return read_report(path, self.name, rounds)


def cprofile(python, name, seconds):
    out = subprocess.run([python, '-c', CPROFILE, HERE, name, str(seconds)], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    figures = Figures()
    for (path, line, function), ncalls, tottime in json.loads(out):
        if path == '~':
            continue
        figures.add((os.path.basename(path), line, function), 1e9 * tottime)
        if function == name:
            figures.rounds += ncalls
    return figures


def large(reference):
    return [key for key in reference.tottime if reference.share(key) > 0.01]


def difference(reference, figures):
    """The largest one of shares, in points, and its function's name."""
    return max((100 * abs(figures.share(key) - reference.share(key)), key[2])
               for key in large(reference))


def is_within(reference, figures, key):
    return (abs(figures.share(key) - reference.share(key)) <=
            2 * math.hypot(figures.error(key), reference.error(key)))


def compare(reference, measured, of_samples):
    """
    measured: pairs of figures, and CPU times of an untraced round before and after these. of_samples: its sum is
    compared with the process's CPU time.
    """
    figures = [each for each, _ in measured]
    points, where = statistics.median_low(difference(reference, each) for each in figures)
    expected = sum(each.rounds * statistics.mean(rounds_ns) for each, rounds_ns in measured)
    within = [is_within(reference, each, key) for each in figures for key in large(reference)]
    if of_samples:
        expected = sum(each.own_cpu for each in figures)
    return {
        'points': points,
        'where': where,
        'ratio': sum(sum(each.tottime.values()) for each in figures) / (expected or math.inf),
        'changed': max(max(rounds_ns) / min(rounds_ns) for _, rounds_ns in measured),
        'within': sum(within) if figures[0].has_errors else None,
        'rows': len(within),
    }


def measure_ways(program, ctl, seconds):
    """By way: figures, and the CPU times of a round directly before and afterwards."""
    measured = {way: [] for way in [*WAYS, *IDLE_WAYS]}
    before = program.round_ns(BESIDE)
    for _ in range(TIMES):
        for way, options in [*WAYS.items(), *IDLE_WAYS.items()]:
            idle = IDLE if way in IDLE_WAYS else 0
            figures = program.record(ctl, seconds, options, 2 * idle)
            after = program.round_ns(BESIDE)
            measured[way].append((figures, (before, after)))
            before = after
    return measured


def measure(ctl, python, name, seconds):
    program = Program(python, name)
    before = program.record(ctl, seconds, SAMPLE)
    measured = measure_ways(program, ctl, seconds)
    after = program.record(ctl, seconds, SAMPLE)
    rounds_ns = program.round_ns(BESIDE)
    figures = cprofile(python, name, seconds)
    measured['cProfile'] = [(figures, (rounds_ns, program.round_ns(BESIDE)))]
    program.end()
    reference = before.plus(after)
    results = {way: compare(reference, m, way in IDLE_WAYS and 'exact' not in way) for way, m in measured.items()}
    print('%s: before and after differ by %.1f points' % (name, difference(before, after)[0]))
    for way, r in results.items():
        print('  %-16s %5.1f points (%s), sum %.2f (a round\'s time changed by %.0f %%)%s' % (
            way, r['points'], r['where'], r['ratio'], 100 * (r['changed'] - 1),
            '' if r['within'] is None else ', %d of %d within 2 errors' % (r['within'], r['rows'])),
            flush=True)
    return results


def summary(results, way):
    points = [r[way]['points'] for r in results]
    ratios = [r[way]['ratio'] for r in results]
    known = [r[way] for r in results if r[way]['within'] is not None]
    text = '%-16s worst function: median %.1f, most %.1f points; ' % (
        way, statistics.median(points), max(points))
    text += 'sum %.2f to %.2f, %d of %d within %.0f %%' % (
        min(ratios), max(ratios), sum(abs(ratio - 1) <= RATIO for ratio in ratios),
        len(ratios), 100 * RATIO)
    if known:
        text += '; within 2 errors: %.0f %%' % (
            100 * sum(r['within'] for r in known) / sum(r['rows'] for r in known))
    return text


def main():
    ctl, python, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    names = sys.argv[4:] or subprocess.run(
        [python, os.path.join(HERE, 'programs.py'), '--list'], check=True,
        stdout=subprocess.PIPE, text=True).stdout.split()
    print(subprocess.run([python, '-VV'], check=True, stdout=subprocess.PIPE,
                         text=True).stdout.strip())
    results = [measure(ctl, python, name, seconds) for name in names]
    for way in results[0]:
        print(summary(results, way))


if __name__ == '__main__':
    main()
