# SPDX-License-Identifier: BSD-2-Clause
"""(No run.py.) A function whose lines take known shares of its time. `lines.py`:

prints `ready`, waits for a line, works until there is another one, prints `result` and the CPU
seconds of each line that the program measured itself, as JSON, then `done`; waits, and exits.
"""
import json
import sys
import time

import proto

clock = getattr(time, "thread_time", time.process_time)
here = sys._getframe


def work(told, spent, table, text, count):
    first = here().f_lineno + 4
    x = 0
    while not told():
        t0 = clock()
        for i in range(20000): x = (x + i) & 0xFFFF
        t1 = clock()
        for i in range(40000): x = table["k"] - x; y = x
        t2 = clock()
        for i in range(90000): y = count(text)
        t3 = clock()
        spent[first] = spent.get(first, 0) + t1 - t0
        spent[first + 2] = spent.get(first + 2, 0) + t2 - t1
        spent[first + 4] = spent.get(first + 4, 0) + t3 - t2
    return x + y


def main():
    spent = {}
    proto.say("ready")
    proto.wait()
    work(proto.told, spent, {"k": 1}, "abc", len)
    proto.say("result " + json.dumps(spent))
    proto.say("done")
    proto.wait()


main()
