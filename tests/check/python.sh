#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The target programs: each compiles on every Python of this machine, and mixed.py has the same counts in
# two runs. (cProfile of 3.12 and later occasionally misses a call on a busy machine.)
set -eu
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# count_mixed PYTHON NUMBER
count_mixed() {
	printf '\n\n' | "$1" tests/targets/run.py mixed --cprofile "$tmp/$2.json" >/dev/null
}

ran=0
for python in "$HOME"/.pyenv/versions/3.*/bin/python3 /usr/bin/python3; do
	[ -x "$python" ] || continue
	ran=1
	"$python" -c 'import sys
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as f:
        compile(f.read(), name, "exec")' tests/targets/*.py
	equal=0
	count_mixed "$python" 1
	for i in 2 3 4; do
		count_mixed "$python" $i
		"$python" tests/targets/compare.py "$tmp/$((i - 1)).json" "$tmp/$i.json" && equal=1 && break
	done
	[ $equal = 1 ] || {
		echo "$python: no two runs of mixed.py are equal"
		exit 1
	}
done
[ $ran = 1 ] || exit 77
