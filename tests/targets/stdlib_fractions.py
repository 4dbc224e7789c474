# SPDX-License-Identifier: BSD-2-Clause
"""fractions: operators made by closures, abstract base classes."""

from fractions import Fraction


def harmonic(n):
    return sum(Fraction(1, i) for i in range(1, n))


def continued(terms):
    value = Fraction(terms[-1])
    for term in reversed(terms[:-1]):
        value = term + 1 / value
    return value


def main(rounds=40):
    for i in range(rounds):
        assert harmonic(60).denominator > 10 ** 20
        assert abs(float(continued([1] * 40)) - 1.618033988749895) < 1e-12
        values = [Fraction(n, 37) for n in range(80)]
        values.sort(key=lambda f: (f.denominator, -f))
        assert sum(values) == Fraction(3160, 37) and max(values) == Fraction(79, 37)
        assert Fraction("3/7") + Fraction("0.5") == Fraction(13, 14)
        assert round(Fraction(22, 7), 2) == Fraction(157, 50) and Fraction(7, 2) // 1 == 3
        assert Fraction(3.14159).limit_denominator(100) == Fraction(311, 99)
