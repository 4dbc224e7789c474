#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Literal durations in the tests: each of them is a guess at the machine's speed. harness/patience.h has what a
# test may wait for, and the only ones. Programs that are traced (targets/, and Python in strings), benchmarks
# and the soak have times of their own.
set -eu
cd "$(dirname "$0")/../.."

list() { git ls-files --cached --others --exclude-standard -- "$@" | grep -v '^tests/harness/patience\.' || true; }

number='[0-9][0-9.]*[a-zA-Z]*'
c="\.timeout = |(^|[^a-zA-Z0-9_.])(u|nano|clock_nano)?sleep *\([^)]*$number"
c="$c|tv_[nu]?sec *= *[^;,}]*[1-9]|(^|[^a-zA-Z0-9_])(curl_multi_)?poll\([^()]*, *[0-9]*[1-9][0-9]*\)"
c="$c|(^|[^a-zA-Z0-9_])alarm\([1-9]|(traced_run|traced_work|ctl_answers)\([^;]*[^a-zA-Z0-9_.]$number"
c="$c|(seconds|now|now_s|_ms|monotonic_ns)\(\)( - [a-zA-Z_>.-]+)? *(<|>[^=]|\+) *[^;]*[0-9A-Z]"
named="#define [A-Z_]*(_(S|MS|US|NS|SECONDS)|DEADLINE|PAUSE|WAIT)[[:space:]]+\(?$number"
waits="clock_(get|nano|monotonic)|(^|[^a-z_])[a-z_]*sleep *\(|poll *\(|traced_|patience_|server_rig_ms"
js="setTimeout\(.*[0-9]|timeout: *[0-9]|timeout = *[0-9]|(^|[^.a-zA-Z])sleep\([0-9]"

# shellcheck disable=SC2046 # names in this tree hold no blanks
found=$(
	# Comments and strings are not code: remove both.
	for file in $(list 'tests/unit/*.c' 'tests/integration/*.c' 'tests/e2e/*.c' 'tests/attack/*.c' \
		'tests/harness/*.[ch]'); do
		pattern=$c
		! grep -qE "$waits" "$file" || pattern="$c|$named"
		sed 's/"\([^"\\]\|\\.\)*"/""/g; s,/\*.*\*/,,; s,//.*,,; /^[[:space:]]*\*/s/.*//; /^[[:space:]]*"/s/.*//' "$file" |
			grep -nE "$pattern" | grep -v 'struct timespec times\[' | sed "s,^,$file:,"
	done
	grep -HnE "$js" $(list 'tests/browser/*.mjs')
) || true
[ -z "$found" ] || printf '%s\n' "$found"
[ "${1:-}" = --count ] && printf '%s\n' "$found" | grep -c . && exit 0
[ -z "$found" ] || {
	echo "  ^ a literal duration: see tests/harness/patience.h"
	exit 1
}
