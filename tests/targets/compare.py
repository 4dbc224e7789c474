#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compare call counts: compare.py OURS.json CPROFILE.json

OURS is a snapshot in pyprofd's json format, or like CPROFILE a list written by run.py --cprofile.
Prints every function whose ncalls or pcalls differ, then one closing line; exits with 1 if any
differ, if nothing was compared, or if the snapshot is not exact. --ignore FILE leaves out functions
of files that end so, --event-loop those that a server's event loop calls as often as time has it;
--ncalls compares ncalls only.
"""

import json
import os
import sys

COMPARED_OF_PROTO = ("measured", "thread_main")
# How often asyncio's loop looks for something to do, and how much it then finds ready at once; how
# often a timer is compared with others. No two runs of a server agree in that.
EVENT_LOOP = {
    "asyncio/base_events.py": ("time", "_run_once", "_add_callback"),
    "asyncio/events.py": ("_run", "__lt__"),
    "asyncio/selector_events.py": ("_process_events", "_accept_connection"),
    "selectors.py": ("select", "_key_from_fd"),
    "socket.py": ("accept",),
}


def of_snapshot(doc):
    for row in doc["functions"]:
        if row.get("pseudo") or row["ncalls"] == 0:  # ncalls 0: was running at attach
            continue
        yield row["file"], row["line"], row["name"], row["ncalls"], row["pcalls"]


def of_event_loop(filename, name):
    return any(name in names and filename.endswith("/" + file)
               for file, names in EVENT_LOOP.items())


def outside(filename, name, ignore):
    base = os.path.basename(filename)
    if base == "proto.py":
        return name not in COMPARED_OF_PROTO
    return base == "run.py" or any(filename.endswith(end) for end in ignore)


def load(path, ignore, timing):
    with open(path) as f:
        doc = json.load(f)
    exact = doc.get("exact", True) if isinstance(doc, dict) else True
    counts = {}
    rows = of_snapshot(doc) if isinstance(doc, dict) else doc
    for filename, line, name, ncalls, pcalls in rows:
        if outside(filename, name, ignore) or (not timing and of_event_loop(filename, name)):
            continue
        total = counts.setdefault((filename, line, name), [0, 0])
        total[0] += ncalls
        total[1] += pcalls
    return counts, exact


def main(argv):
    ignore = []
    paths = []
    compared, timing = 2, True
    argv = argv[1:]
    while argv:
        word = argv.pop(0)
        if word == "--ignore" and argv:
            ignore.append(argv.pop(0))
        elif word == "--ncalls":
            compared = 1
        elif word == "--event-loop":
            timing = False
        else:
            paths.append(word)
    if len(paths) != 2:
        sys.stderr.write(__doc__)
        return 2
    ours, exact = load(paths[0], ignore, timing)
    theirs, _ = load(paths[1], ignore, timing)
    differ = [key for key in sorted(set(ours) | set(theirs))
              if ours.get(key, [0, 0])[:compared] != theirs.get(key, [0, 0])[:compared]]
    for key in differ:
        print("%s:%d(%s)" % key,
              "ours %d/%d, cProfile %d/%d" % tuple(ours.get(key, [0, 0]) + theirs.get(key, [0, 0])))
    if not exact:
        print("the snapshot says itself that events were lost")
    print("%d functions, %d calls, %d differ"
          % (len(theirs), sum(n for n, _ in theirs.values()), len(differ)))
    return 1 if differ or not theirs or not exact else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
