#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The target programs: each compiles on every Python here, and mixed.py counts the same twice.
set -eu
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

ran=0
for python in "$HOME"/.pyenv/versions/3.*/bin/python3 /usr/bin/python3; do
	[ -x "$python" ] || continue
	ran=1
	for f in tests/targets/*.py; do
		"$python" -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$f"
	done
	for i in 1 2; do
		printf '\n\n' | "$python" tests/targets/run.py mixed --cprofile "$tmp/$i.json" >/dev/null
	done
	"$python" tests/targets/compare.py "$tmp/1.json" "$tmp/2.json" || {
		echo "$python: two runs of mixed.py differ"
		exit 1
	}
done
[ $ran = 1 ] || exit 77
