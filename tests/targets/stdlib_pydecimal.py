# SPDX-License-Identifier: BSD-2-Clause
"""_pydecimal: arithmetic in which every operator is a Python call."""

import _pydecimal as decimal

D = decimal.Decimal


def pi():
    with decimal.localcontext() as context:
        context.prec = 40
        last, t, s, n, na, d, da = 0, D(3), 3, 1, 0, 0, 24
        while s != last:
            last = s
            n, na = n + na, na + 8
            d, da = d + da, da + 32
            t = (t * n) / d
            s += t
        return +s


def main(rounds=8):
    for i in range(rounds):
        assert str(pi()).startswith("3.14159265358979323846264338327950288419")
        x = D(i + 2)
        assert abs(x.sqrt() ** 2 - x) < D("1e-20")
        assert abs(x.ln().exp() - x) < D("1e-20")
        for j in range(60):
            x = (x * D("1.1") + D(j) / D(7)).quantize(D("0.0001"))
            str(x), hash(x), int(x), x < j, -x, divmod(x, D(3))
        try:
            D(1) / D(0)
        except decimal.DivisionByZero:
            pass
