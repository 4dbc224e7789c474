#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Allowed includes. One line per directory: itself, then the directories that it may use besides itself,
# base/ and pyprof/. Other includes are forbidden, so the graph below is the architecture.
set -eu
cd "$(dirname "$0")/../.."

dag='
base
target
elf
event
snapshot
python elf target
plan elf python
inspect target elf python plan
probe target plan python event
stats snapshot
stack event snapshot stats
accuracy snapshot stats stack
counting event snapshot stats stack
profile event snapshot stats stack accuracy counting
format snapshot stats
interval format snapshot stats
history interval snapshot
continuous history interval session find target probe snapshot
clickhouse interval snapshot
push interval clickhouse format snapshot stats target
verify target elf python plan inspect probe event profile stats snapshot
slow profile stack event snapshot stats format
timeline slow profile stack event snapshot stats format
session target elf python plan inspect probe event accuracy profile stats snapshot verify timeline slow
server session accuracy format snapshot stats timeline slow interval history push
run server accuracy session format snapshot continuous history interval push
doctor target python plan inspect probe session verify
find target python inspect
dump target python inspect find
'
# Only probe/ uses the skeleton of the BPF programs. The client inspects processes only through
# doctor/, dump/ and find/.
cli_may='clickhouse doctor dump find format history interval push snapshot timeline'

bad=$(
	find daemon cli include -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | xargs grep -Hn '^#include "' |
		awk -v dag="$dag" -v cli="$cli_may" '
		BEGIN {
			n = split(dag, line, "\n")
			for (i = 1; i <= n; i++) {
				m = split(line[i], w, " ")
				if (!m) continue
				known[w[1]] = 1
				for (j = 1; j <= m; j++) may[w[1], w[j]] = 1
			}
			m = split(cli, w, " ")
			for (j = 1; j <= m; j++) may["cli", w[j]] = 1
			known["cli"] = 1
		}
		{
			split($0, part, ":"); file = part[1]; lineno = part[2]
			inc = $0; sub(/.*#include "/, "", inc); sub(/".*/, "", inc)
			top = file; sub(/\/.*/, "", top)
			# The files of daemon/ itself assemble the program and may use all directories.
			if (file ~ /^daemon\/[^\/]*$/) next
			dir = top
			if (top == "daemon") { dir = file; sub(/^daemon\//, "", dir); sub(/\/.*/, "", dir) }
			at = file ":" lineno ": "
			if (inc ~ /\.skel\.h$/) {
				if (file !~ /^daemon\/probe\/(arrivals|probe|probe_marks|probe_open|programs|ticker)\.c$/)
					print at "only probe/arrivals.c, probe.c, probe_marks.c, probe_open.c, programs.c and ticker.c use the skeleton"
				next
			}
			if (inc == "syscall_names.h") {
				if (file != "daemon/base/syscalls.c") print at "only base/syscalls.c uses it"
				next
			}
			to = inc
			if (!sub(/\/.*/, "", to)) {
				if (top == "cli") next
				print at "write \"directory/" inc "\""
				next
			}
			if (top == "include") {
				if (to != "pyprof") print at "include/ includes nothing but itself"
				next
			}
			if (!(dir in known)) { print at "directory " dir " is not in layers.sh"; next }
			if (to == "base" || to == "pyprof" || may[dir, to]) next
			print at dir "/ may not include " to "/"
		}'
	# The planner's back ends are the only code that depends on an instruction set: only they use the
	# decoder, and they do not depend on the planner.
	grep -rn '#include.*Zydis' daemon cli include tests bpf --include='*.[ch]' |
		grep -v '^daemon/plan/arch/' | sed 's/$/: only daemon\/plan\/arch\/ uses Zydis/'
	grep -n '^#include "' daemon/plan/arch/*.[ch] | grep -v '"plan/arch/' |
		sed 's/$/: daemon\/plan\/arch\/ includes nothing else of ours/'
	# A source file includes its own header first, or its directory's private one, which includes
	# its own header: this proves that the header is complete.
	find daemon cli -name '*.c' 2>/dev/null | LC_ALL=C sort | while read -r c; do
		[ -e "${c%.c}.h" ] || continue
		dir=${c%/*}
		dir=${dir#daemon}
		dir=${dir#cli}
		dir=${dir#/}
		grep -m 1 '^#include' "$c" | grep -q "^#include \"${dir:+$dir/}[a-z_0-9]*\.h\"" ||
			echo "$c: its own header is not its first include"
	done
	for top in *; do
		case $top in
		Makefile | bpf | daemon | cli | include | tests | packaging | README.md | LICENSE | build) ;;
		*) git ls-files --error-unmatch "$top" >/dev/null 2>&1 && echo "$top: a new top-level name" ;;
		esac
	done
)
[ -z "$bad" ] || {
	echo "$bad"
	exit 1
}
