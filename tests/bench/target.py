# SPDX-License-Identifier: BSD-2-Clause
"""The target of bench.py: executes commands from stdin, answers each with a line.

    calls MS        ns per call of an empty function: minimum and median of short runs
    ccalls NAME MS  the same for a function written in C: one of CCALLS
    known MS        long C functions: name, calls, seconds of CPU and of
                    wall time, of each that is in KNOWN
    profiler NAME   enable cProfile, yappi, yappi-builtins or none
    work N LOOPS    CPU time of N calls with that many loops in each, and of the same work without
                    calls: seconds each
    mix SECONDS     rounds of calls of many lengths, for this time: ns of CPU time per round, and
                    their ratios to the median of their BLOCK of rounds
    shares          the profiler's times of these two functions: seconds each
    spin            start a thread that reads the clock all the time
    gaps            its gaps of GAP or longer: pairs of perf_counter's us
"""

import inspect
import json
import math
import random
import re
import sys
import threading
import time
import zlib

CALLS = 300  # a traced run is then shorter than a time slice of the scheduler
profiler = None


def empty():
    pass


def run_calls():
    for _ in range(CALLS):
        empty()


def calls(ms):
    clock = time.perf_counter
    times = []
    end = clock() + float(ms) / 1e3
    while True:
        start = clock()
        run_calls()
        now = clock()
        times.append((now - start) / CALLS * 1e9)
        if now > end:
            break
    times.sort()
    return "%.2f %.2f" % (times[0], times[len(times) // 2])


# C functions. The loop around a call is the same for all, and is measured as "nothing".

CCALLS = {
    "nothing": "pass",
    "len": "len(s)",
    "append": "l.append(s)",
    "sqrt": "sqrt(2.0)",
    "upper": "s.upper()",
    "int": 'int("3")',
}


def ccall_runner(body):
    names = {"CALLS": CALLS, "sqrt": math.sqrt}
    exec("def run():\n s, l = 'spam', []\n for _ in range(CALLS):\n  %s\n" % body, names)
    return names["run"]


CCALLS = {name: ccall_runner(body) for name, body in CCALLS.items()}


def ccalls(name, ms):
    clock = time.perf_counter
    run, times = CCALLS[name], []
    end = clock() + float(ms) / 1e3
    while True:
        start = clock()
        run()
        now = clock()
        times.append((now - start) / CALLS * 1e9)
        if now > end:
            break
    times.sort()
    return "%.2f %.2f" % (times[0], times[len(times) // 2])


def known_calls():
    chance = random.Random(7)
    numbers = [chance.random() for _ in range(20000)]
    letters = "".join(chance.choice("abcdefgh ") for _ in range(10000))
    pattern = re.compile("[a-c]+h [d-g]*zz")
    data = bytes(bytearray(chance.randrange(40) for _ in range(20000)))
    return [("<built-in method time.sleep>", time.sleep, (0.002,)),
            ("<built-in method builtins.sorted>", sorted, (numbers,)),
            ("<built-in method zlib.compress>", zlib.compress, (data,)),
            ("<method 'search' of '%s.Pattern' objects>" % type(pattern).__module__
             if sys.version_info >= (3, 7) else "<method 'search' of '_sre.SRE_Pattern' objects>",
             pattern.search, (letters,)),
            ("<built-in method builtins.sum>", sum, (numbers,)),
            ("<method 'count' of 'str' objects>", letters.count, ("ab",)),
            ("<built-in method builtins.max>", max, (numbers,)),
            ("<method 'encode' of 'str' objects>", ("\xe4" * 50000).encode, ("utf-8",))]


def known(ms):
    """Measured around each call; the measurement is short compared with the call."""
    found = []
    for name, call, args in known_calls():
        end, calls, cpu, wall = time.perf_counter() + float(ms) / 1e3, 0, 0, 0
        while time.perf_counter() < end:
            c, w = cpu_clock(), time.perf_counter()
            call(*args)
            cpu, wall, calls = cpu + cpu_clock() - c, wall + time.perf_counter() - w, calls + 1
        found.append([name, calls, cpu, wall])
    return json.dumps(found)


# The same work, in a separate function and without one

def small(n, loops):
    for _ in range(loops):
        n = n * 3 & 0xffff
    return n


def with_calls(n, loops):
    for i in range(n):
        small(i, loops)


def without_calls(n, loops):
    for i in range(n):
        m = i
        for _ in range(loops):
            m = m * 3 & 0xffff


# A round takes about 600 us in some 640 calls: of mix_0 to mix_4, which take the same time each, in
# bodies of 0.3 to 30 us.

def small_as(name):
    """small() as a separate function: profilers distinguish functions by name."""
    names = {}
    exec(inspect.getsource(small).replace("small", name), names)
    return names[name]


MIX = [(small_as("mix_%d" % i), n, loops) for i, (n, loops) in enumerate(
    ((320, 4), (160, 12), (80, 28), (40, 60), (4, 640)))]


def mix_round():
    for function, n, loops in MIX:
        for i in range(n):
            function(i, loops)


BLOCK = 201


def mix_block():
    times, before = [], cpu_clock()
    for _ in range(BLOCK):
        mix_round()
        now = cpu_clock()
        times.append(now - before)
        before = now
    return sum(times), sorted(times)[BLOCK // 2] * BLOCK


def mix(seconds):
    sums, medians = [], []
    while sum(sums) < float(seconds):
        one = mix_block()
        sums.append(one[0])
        medians.append(one[1])
    return "%.1f %.5f" % (sum(sums) / len(sums) / BLOCK * 1e9, sum(sums) / sum(medians))


def cpu_clock():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)  # time.thread_time is 3.7+


def work(n, loops):
    start = cpu_clock()
    with_calls(int(n), int(loops))
    middle = cpu_clock()
    without_calls(int(n), int(loops))
    return "%.6f %.6f" % (middle - start, cpu_clock() - middle)


def use(name):
    global profiler
    if name == "cProfile":
        import cProfile
        profiler = cProfile.Profile()
        profiler.enable()
    elif name.startswith("yappi"):
        import yappi
        profiler = yappi
        yappi.clear_stats()
        yappi.set_clock_type("cpu")
        yappi.start(builtins=name == "yappi-builtins")
    elif profiler is not None:
        stop = getattr(profiler, "disable", None) or profiler.stop
        stop()
    return "ok"


def shares():
    found = {}
    if hasattr(profiler, "get_func_stats"):
        for stat in profiler.get_func_stats():
            found[stat.name] = stat.ttot
    else:
        for entry in profiler.getstats():
            if not isinstance(entry.code, str):
                found[entry.code.co_name] = entry.totaltime
    return "%.6f %.6f" % (found["with_calls"], found["without_calls"])


def sleeps(depth, n, seconds):
    if depth:
        return sleeps(depth - 1, n, seconds)
    start = cpu_clock()
    for _ in range(n):
        time.sleep(seconds)
    return cpu_clock() - start


def waits(n, us):
    """CPU time of a wait in ns, below 20 frames."""
    return "%.1f" % (sleeps(20, int(n), int(us) / 1e6) / int(n) * 1e9)


GAP = 20e-6
gaps = []


def spinning():
    clock = time.perf_counter
    last = clock()
    while True:
        now = clock()
        if now - last > GAP:
            gaps.append((last, now))
        last = now


def spin():
    thread = threading.Thread(target=spinning)
    thread.daemon = True
    thread.start()
    return "ok"


def tell_gaps():
    found = " ".join("%.1f %.1f" % (a * 1e6, b * 1e6) for a, b in list(gaps))
    return found or "0 0"


COMMANDS = {"calls": calls, "ccalls": ccalls, "known": known, "mix": mix, "profiler": use,
            "work": work, "shares": shares, "spin": spin, "gaps": tell_gaps,
            "waits": waits}


def main():
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        words = sys.stdin.readline().split()
        if not words:
            break
        sys.stdout.write(COMMANDS[words[0]](*words[1:]) + "\n")
        sys.stdout.flush()


main()
