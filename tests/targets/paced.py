# SPDX-License-Identifier: BSD-2-Clause
"""Calls at a known rate: run.py paced [ROUNDS [CALLS [PAUSE]]]

ROUNDS times CALLS calls of an empty function and a pause in seconds. The result is their number.
"""

import time

WARM = 0


def empty():
    pass


def main(rounds="20", calls="1000", pause="0.1"):
    for _ in range(int(rounds)):
        for _ in range(int(calls)):
            empty()
        time.sleep(float(pause))
    return '{"calls": %d}' % (int(rounds) * int(calls))
