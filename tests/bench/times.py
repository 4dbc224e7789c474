#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How true times are: shares of tottime by mode, beside samples of the undisturbed program.

usage: times.py PYPROFCTL PYTHON SECONDS [PROGRAM ...]

For each program of programs.py: the reference is mode sample on the running program, before any probe
and once more afterwards; what the two differ by is noise. Printed are, for each way to measure, the
largest difference of a function's share from the reference in points of the whole (functions above
1 %), and the sum of tottime by the CPU time that the same work takes undisturbed.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RATE = '999'
WAYS = {
    'trace': [],
    'trace+samples': ['--rate', RATE],
    'count+samples': ['--mode', 'count', '--rate', RATE],
    'max-overhead 5': ['--max-overhead', '5'],
}


def shares(rows):
    """Functions' shares of the sum, by file name, line and name."""
    total = sum(rows.values()) or 1
    return {key: value / total for key, value in rows.items()}


def functions(path):
    with open(path) as f:
        report = json.load(f)
    rows = {}
    for row in report['functions']:
        if row['pseudo']:
            continue
        key = os.path.basename(row['file']), row['line'], row['name']
        rows[key] = rows.get(key, 0) + row['tottime']['cpu']
    return report, rows


class Program:
    def __init__(self, python, name):
        self.process = subprocess.Popen([python, os.path.join(HERE, 'programs.py'), name],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == 'ready\n'

    def end(self):
        out, _ = self.process.communicate()
        return out

    def record(self, ctl, seconds, options):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'out.json')
            subprocess.run([ctl, 'record', '--pid', str(self.process.pid), '-d', str(seconds),
                            '-o', path] + options, check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            return functions(path)


def cprofile(python, name, seconds):
    script = ('import cProfile, json, sys, time\n'
              'sys.path.insert(0, %r)\n'
              'import programs\n'
              'work, end = programs.PROGRAMS[%r], time.process_time() + %r\n'
              'p = cProfile.Profile(builtins=False)\n'
              'p.enable()\n'
              'while time.process_time() < end:\n'
              '    work()\n'
              'p.disable()\n'
              'p.create_stats()\n'
              'print(json.dumps([[list(k), v[2]] for k, v in p.stats.items()]))\n'
              % (HERE, name, seconds))
    out = subprocess.run([python, '-c', script], check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = {}
    for (path, line, name_), tottime in json.loads(out):
        if path != '~':
            key = os.path.basename(path), line, name_
            rows[key] = rows.get(key, 0) + tottime
    return rows


def worst(reference, measured):
    return max((abs(share - measured.get(key, 0)), key[2])
               for key, share in reference.items() if share > 0.01)


def measure(ctl, python, name, seconds):
    program = Program(python, name)
    sample = ['--mode', 'sample', '--rate', RATE]
    _, before = program.record(ctl, seconds, sample)
    results = {}
    for way, options in WAYS.items():
        results[way] = program.record(ctl, seconds, options)[1]
    _, after = program.record(ctl, seconds, sample)
    program.end()
    results['cProfile'] = cprofile(python, name, seconds)
    both = {key: before.get(key, 0) + after.get(key, 0) for key in set(before) | set(after)}
    reference = shares(both)
    noise = worst(shares(before), shares(after))
    line = {way: worst(reference, shares(rows)) for way, rows in results.items()}
    print('%-12s noise %4.1f  %s' % (name, 100 * noise[0], '  '.join(
        '%s %5.1f (%s)' % (way, 100 * error, where) for way, (error, where) in line.items())),
        flush=True)
    return {way: error for way, (error, _) in line.items()}


def main():
    ctl, python, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    names = sys.argv[4:] or subprocess.run(
        [python, os.path.join(HERE, 'programs.py'), '--list'], check=True,
        stdout=subprocess.PIPE, text=True).stdout.split()
    errors = [measure(ctl, python, name, seconds) for name in names]
    for way in errors[0]:
        values = sorted(e[way] for e in errors)
        print('%-16s median %4.1f  worst %4.1f points' % (
            way, 100 * values[len(values) // 2], 100 * values[-1]))


if __name__ == '__main__':
    main()
