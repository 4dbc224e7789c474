#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compare call counts: compare.py OURS.json CPROFILE.json

OURS is a snapshot in pyprofd's json format, or like CPROFILE a list written by run.py --cprofile.
Prints every function whose ncalls or pcalls differ, then one closing line; exits with 1 if any
differ, if nothing was compared, or if the snapshot is not exact. --ignore FILE leaves out functions
of files that end so, --event-loop those that a server's event loop calls as often as time has it;
--ncalls compares ncalls only, --only-native C functions only.
"""

import json
import os
import re
import sys

COMPARED_OF_PROTO = ("measured", "thread_main")
# The number of times that asyncio's loop looks for work, and of ready handles that it then finds; the
# number of comparisons between timers. They differ in any two runs of a server.
EVENT_LOOP = {
    "asyncio/base_events.py": ("time", "_run_once", "_add_callback"),
    "asyncio/events.py": ("_run", "__lt__"),
    "asyncio/selector_events.py": ("_process_events", "_accept_connection"),
    "selectors.py": ("select", "_key_from_fd"),
    "socket.py": ("accept",),
}


def of_snapshot(doc):
    for row in doc["functions"]:
        # ncalls 0: was running at attach
        if row.get("pseudo") or row.get("native") or row["ncalls"] == 0:
            continue
        yield row["file"], row["line"], row["name"], row["ncalls"], row["pcalls"]
    yield from native_of_snapshot(doc)


def native_of_snapshot(doc):
    """C functions, except those called by functions that are not compared. Ignores their recursion."""
    rows = doc["functions"]
    for edge in doc["edges"]:
        callee, caller = rows[edge["callee"]], edge["caller"]
        if not callee.get("native") or caller is None:
            continue
        if os.path.basename(rows[caller]["file"]) in ("proto.py", "run.py"):
            continue
        yield callee["file"], 0, callee["name"], edge["ncalls"], edge["ncalls"]


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
        # The address of a type differs between processes.
        total = counts.setdefault((filename, line, re.sub("0x[0-9a-f]+>$", "0x…>", name)), [0, 0])
        total[0] += ncalls
        total[1] += pcalls
    return counts, exact


def paired(ours, theirs):
    """cProfile names the method of a type by looking it up in the class of its first object, where it may
    be a Python function of that name; pyprofd names the method of the type. 3.15 prints those of object
    as <method 'NAME'>, without a type."""
    for key in [k for k in theirs if k not in ours]:
        found = re.match(r"<function (?:.*\.)?(\w+) at |<method '(\w+)'>$", key[2])
        if not found:
            continue
        name = found.group(1) or found.group(2)
        for other in ours:
            if other not in theirs and other[2].startswith("<method '%s' of " % name):
                theirs[other] = theirs.pop(key)
                break


def only_native(counts):
    return {key: n for key, n in counts.items() if key[0] == "~"}


def main(argv):
    ignore = []
    paths = []
    compared, timing, native = 2, True, False
    argv = argv[1:]
    while argv:
        word = argv.pop(0)
        if word == "--ignore" and argv:
            ignore.append(argv.pop(0))
        elif word == "--ncalls":
            compared = 1
        elif word == "--event-loop":
            timing = False
        elif word == "--only-native":
            native = True
        else:
            paths.append(word)
    if len(paths) != 2:
        sys.stderr.write(__doc__)
        return 2
    ours, exact = load(paths[0], ignore, timing)
    theirs, _ = load(paths[1], ignore, timing)
    paired(ours, theirs)
    if native:
        ours, theirs = only_native(ours), only_native(theirs)
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
