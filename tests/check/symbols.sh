#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# No two symbols with external linkage may have the same name in one program: the linker takes the first
# one that it needs from an archive, without a message. Weak symbols may be replaced.
#
#   symbols.sh [BUILD]    default: $PYPROF_BUILD, or build
set -euo pipefail

build=${1:-${PYPROF_BUILD:-build}}
failed=0

# one_each FILE...: the files of one program; prints the names that occur twice, and their files.
one_each() {
	local twice
	twice=$(nm -A --extern-only --defined-only "$@" |
		awk -v cut="$build/" 'NF > 2 && $(NF - 1) ~ /^[A-TX-Z]$/ {
			where = $1; sub(/:[0-9a-f]*$/, "", where); sub(cut, "", where)
			if ($NF in at) print $NF " is defined twice: in " at[$NF] " and " where
			else at[$NF] = where }')
	[ -z "$twice" ] || failed=1
	[ -z "$twice" ] || echo "$twice"
}

for file in libpyprof.a libpyprofcli.a obj/daemon/main.o obj/cli/main.o; do
	[ -e "$build/$file" ] || {
		echo "$build/$file is not there: build first"
		exit 2
	}
done
libs=("$build/libpyprofcli.a" "$build/libpyprof.a")
one_each "$build/obj/daemon/main.o" "$build/libpyprof.a"
one_each "$build/obj/cli/main.o" "${libs[@]}"
[ ! -e "$build/libharness.a" ] || one_each "$build/libharness.a" "${libs[@]}"
exit $failed
