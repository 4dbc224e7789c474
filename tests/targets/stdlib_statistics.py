# SPDX-License-Identifier: BSD-2-Clause
"""statistics: exact sums by way of fractions, generators with try blocks, groupby."""

import statistics
from fractions import Fraction

DATA = [((i * 7919) % 1009) / 8 for i in range(1500)]


def main(rounds=10):
    for _ in range(rounds):
        assert 60 < statistics.mean(DATA) < 66
        assert statistics.variance(DATA) > 0 and statistics.pstdev(DATA) > 0
        statistics.median(DATA), statistics.median_low(DATA), statistics.median_grouped(DATA)
        assert statistics.mode(DATA + [5.5, 5.5]) == 5.5
        assert statistics.mean([Fraction(1, n) for n in range(1, 60)]) > 0
        assert statistics.harmonic_mean([2, 3, 6]) == 3
        try:
            statistics.mean([])
        except statistics.StatisticsError:
            pass
