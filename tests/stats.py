#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Where the time of a run of `make check` went: one table of sections and programs, from RESULTS.times.

    tests/run.sh --stats [RESULTS]    the last run's whole table
    tests/stats.py --short RESULTS    sections and the ten slowest programs

wall    from begin to end
CPU     of the program and of its children that it waited for; not of daemons that another process reaped
waited  wall less CPU, where that is more than 0: for events, the disk, a CPU
beside  programs that ran at the same time, those with the longest overlap first
"""
import os
import sys


class Row:
    def __init__(self, line):
        begin, end, cpu, self.section, self.name, self.note = (line.rstrip("\n") + " ").split(" ", 5)
        self.begin, self.end, self.cpu = float(begin), float(end), float(cpu)
        self.note = self.note.strip()
        self.wall = self.end - self.begin
        self.waited = max(0.0, self.wall - self.cpu)


def beside(row, rows):
    """[(overlap, name)] of the others, the longest first."""
    found = []
    for other in rows:
        overlap = min(row.end, other.end) - max(row.begin, other.begin)
        if other is not row and overlap > 0.05:
            found.append((overlap, other.name))
    return sorted(found, reverse=True)


def figures(row):
    return "%8.1f %8.1f %8.1f" % (row.wall, row.cpu, row.waited)


HEAD = "%8s %8s %8s" % ("wall s", "CPU s", "waited s")


def print_sections(sections):
    print(HEAD + "  section")
    for row in sections:
        print(figures(row) + "  " + row.section)
    begin, end = min(s.begin for s in sections), max(s.end for s in sections)
    cpu, cpus = sum(s.cpu for s in sections), os.cpu_count()
    print("%8.1f %8.1f %8.1f  in all; %.0f %% of %d CPUs" %
          (end - begin, cpu, max(0, end - begin - cpu), 100 * cpu / cpus / max(end - begin, 1), cpus))


def print_programs(rows, programs, names):
    print(HEAD + "  program (its slowest test); beside it")
    for row in programs:
        others = beside(row, rows)
        print(figures(row) + "  " + row.name + (" (%s)" % row.note if row.note else "") +
              ("; %d: " % len(others) + ", ".join(name for _, name in others[:names]) if others else "; none"))


def main():
    short = sys.argv[1:2] == ["--short"]
    with open(sys.argv[-1] + ".times", encoding="utf-8") as f:
        rows = [Row(line) for line in f]
    sections = [row for row in rows if row.name == "-"]
    programs = sorted((row for row in rows if row.name != "-"), key=lambda row: -row.wall)
    if sections:
        print_sections(sections)
    if short:
        print_programs(programs, programs[:10], 2)
        return
    for section in sorted({row.section for row in programs}):
        print("\n" + section)
        print_programs(programs, [row for row in programs if row.section == section], 4)


main()
