# SPDX-License-Identifier: BSD-2-Clause
"""Do the times of a snapshot add up? Pairs of nanoseconds that must be equal.

    rows    the self times of all contexts of a thread, and the thread's total; those of all
            functions, and the totals of all threads
    clocks  a thread's wall time, and the time from its first moment to its last; what it spent
            while it was in measured() or thread_main() (proto.py), with as much of their caller's
            time as fits, and what the kernel's clocks said of that to the program itself (run.py
            --spans); the CPU time of all threads, and the kernel's account of the process

clocks is for times from which the probes' own were not taken (--raw-times).
"""

import os

CLOCKS = ("cpu", "wall")


def sums(doc, nodes):
    """Sums by thread."""
    total = [dict.fromkeys(CLOCKS, 0) for _ in doc["threads"]]
    for node in nodes:
        for clock in CLOCKS:
            total[node["thread"]][clock] += node["self"][clock]
    return total


def rows(doc):
    for thread, total in zip(doc["threads"], sums(doc, doc["nodes"])):
        for clock in CLOCKS:
            yield total[clock], thread["total"][clock]
    for clock in CLOCKS:
        yield (sum(f["tottime"][clock] for f in doc["functions"]),
               sum(t["total"][clock] for t in doc["threads"]))


def harness(func):
    """Is this one of the functions that call the measured ones?"""
    base = os.path.basename(func["file"])
    return base == "run.py" or base == "proto.py" and func["name"] not in ("measured",
                                                                           "thread_main")


def measured(doc):
    """Returns the nodes that are not the harness's own. A main thread has no others: greenlets have stacks
    without frames of the harness, and between two of them there may be no frame at all. Before its
    first frame, and after its last, a thread started by the program is not measured."""
    inside = []
    for node in doc["nodes"]:
        func = None if node["func"] is None else doc["functions"][node["func"]]
        thread = doc["threads"][node["thread"]]
        above = node["parent"] is not None and inside[node["parent"]]
        if func is None or func["pseudo"]:
            inside.append(above or thread["tid"] == thread["pid"])
        else:
            inside.append((above and not root(doc, node["parent"])) or not harness(func))
    return [node for node, yes in zip(doc["nodes"], inside) if yes]


def root(doc, node):
    return doc["nodes"][node]["func"] is None


def around(doc):
    """Returns the nodes of timed(), which calls them and reads the clocks: between the two, another
    thread may run."""
    return [node for node in doc["nodes"] if node["func"] is not None
            and doc["functions"][node["func"]]["name"] == "timed"
            and doc["functions"][node["func"]]["file"].endswith("proto.py")]


def by_tid(doc, nodes):
    found = {}
    for thread, total in zip(doc["threads"], sums(doc, nodes)):
        for clock in CLOCKS:
            key = thread["tid"], clock
            found[key] = found.get(key, 0) + total[clock]
    return found


def moments(doc):
    for thread in doc["threads"]:
        yield thread["total"]["wall"], thread["end_ns"] - thread["start_ns"]


def spans(doc, reported):
    theirs = {}
    for tid, cpu, wall in reported:
        for clock, seconds in zip(CLOCKS, (cpu, wall)):
            theirs[tid, clock] = theirs.get((tid, clock), 0) + seconds * 1e9
    inner, outer = by_tid(doc, measured(doc)), by_tid(doc, around(doc))
    for key, ns in theirs.items():
        least = inner.get(key, 0)
        yield min(max(ns, least), least + outer.get(key, 0)), ns


def process(doc, cpu):
    """Threads that were started meanwhile have no known time before their first frame."""
    begun = min(t["start_ns"] for t in doc["threads"])
    if all(t["start_ns"] == begun for t in doc["threads"]):
        yield sum(t["total"]["cpu"] for t in doc["threads"]), cpu * 1e9


def clocks(doc, reported, cpu):
    return list(moments(doc)) + list(spans(doc, reported)) + list(process(doc, cpu))
