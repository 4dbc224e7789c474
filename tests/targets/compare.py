#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compare call counts: compare.py OURS.json CPROFILE.json

OURS is a snapshot in pyprofd's json format, or like CPROFILE a list written by run.py --cprofile.
Prints every function whose ncalls or pcalls differ, then one closing line; exits with 1 if any
differ, if nothing was compared, or if the snapshot is not exact. --ignore FILE leaves out functions of files that end so;
--ncalls compares ncalls only.
"""

import json
import os
import sys

COMPARED_OF_PROTO = ("measured", "thread_main")


def of_snapshot(doc):
    for row in doc["functions"]:
        if row.get("pseudo") or row["ncalls"] == 0:  # ncalls 0: was running at attach
            continue
        yield row["file"], row["line"], row["name"], row["ncalls"], row["pcalls"]


def outside(filename, name, ignore):
    base = os.path.basename(filename)
    if base == "proto.py":
        return name not in COMPARED_OF_PROTO
    return base == "run.py" or any(filename.endswith(end) for end in ignore)


def load(path, ignore):
    with open(path) as f:
        doc = json.load(f)
    exact = doc.get("exact", True) if isinstance(doc, dict) else True
    counts = {}
    for filename, line, name, ncalls, pcalls in (of_snapshot(doc) if isinstance(doc, dict) else doc):
        if outside(filename, name, ignore):
            continue
        total = counts.setdefault((filename, line, name), [0, 0])
        total[0] += ncalls
        total[1] += pcalls
    return counts, exact


def main(argv):
    ignore = []
    paths = []
    compared = 2
    argv = argv[1:]
    while argv:
        word = argv.pop(0)
        if word == "--ignore" and argv:
            ignore.append(argv.pop(0))
        elif word == "--ncalls":
            compared = 1
        else:
            paths.append(word)
    if len(paths) != 2:
        sys.stderr.write(__doc__)
        return 2
    ours, exact = load(paths[0], ignore)
    theirs, _ = load(paths[1], ignore)
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
