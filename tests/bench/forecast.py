#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`make bench-forecast`: the overhead that record forecasts, and the slowdown measured afterwards.

usage: forecast.py PYPROFCTL PYTHON SECONDS [PROGRAM ...]

For each program of programs.py: the CPU time of a round in modes trace and count, divided by that of
a round directly before and afterwards.
"""
import re
import statistics
import subprocess
import sys
import time

from times import Program

BESIDE = 1.0  # seconds
ATTACHED = 1.5  # measurement starts this many seconds after the attach
MODES = {
    'trace': ['--exact', '--yes', '--rate', '0'],
    'count': ['--mode', 'count', '--yes'],
}


def measure(program, ctl, seconds, mode):
    """Percent: the forecast (None: there was none) and the measured slowdown."""
    before = program.round_ns(BESIDE)
    with subprocess.Popen([ctl, 'record', '--pid', str(program.process.pid), '-d',
                           str(ATTACHED + seconds), '-o', '/dev/null'] + MODES[mode],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(ATTACHED)
        during = program.round_ns(seconds)
        said = process.communicate()[1]
    undisturbed = (before + program.round_ns(BESIDE)) / 2
    match = re.search(mode + r' \+([\d.]+) %', said)
    return float(match.group(1)) if match else None, 100 * (during / undisturbed - 1)


def main():
    ctl, python, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    names = sys.argv[4:] or subprocess.run(
        [python, sys.path[0] + '/programs.py', '--list'], check=True, stdout=subprocess.PIPE,
        text=True).stdout.split()
    factors = {mode: [] for mode in MODES}
    for name in names:
        program = Program(python, name)
        for mode in MODES:
            forecast, real = measure(program, ctl, seconds, mode)
            if forecast is None:
                print('%-12s %-6s no forecast' % (name, mode), flush=True)
                continue
            # Relative to the whole time: low overhead can be measured as precisely as high overhead.
            factors[mode].append((100 + forecast) / (100 + real))
            print('%-12s %-6s forecast +%.0f %%, measured %+.0f %%: takes %.2f times as long as was '
                  'forecast' % (name, mode, forecast, real, 1 / factors[mode][-1]), flush=True)
        program.end()
    for mode, values in factors.items():
        print('%-6s forecast by measured time: median %.2f, %.2f to %.2f; within a factor of 1.5: '
              '%d of %d' % (mode, statistics.median(values), min(values), max(values),
                            sum(1 / 1.5 <= x <= 1.5 for x in values), len(values)))


if __name__ == '__main__':
    main()
