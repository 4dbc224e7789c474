#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Files of a folder must not include each other in a circle: two modules that do can only be read and
# changed together. A module is X.c with X.h; X_priv.h, which shows X's internals to the other files of
# its folder, belongs to X.
set -eu
cd "$(dirname "$0")/../.."

edges=$(mktemp)
trap 'rm -f "$edges"' EXIT
failed=0

# includes FOLDER: "A B" for each module A of the folder that includes a header of its module B.
includes() {
	prefix=${1#daemon/}/
	case $1 in
	bpf | cli) prefix= ;;
	include/*) prefix=${1#include/}/ ;;
	esac
	grep -H '^#include "' "$1"/*.[ch] | awk -v prefix="$prefix" '
		function module(file) {
			sub(/.*\//, "", file)
			sub(/(\.bpf)?\.[ch]$/, "", file)
			sub(/_priv$/, "", file)
			return file
		}
		{
			split($0, part, "\"")
			rest = part[2]
			if (substr(rest, 1, length(prefix)) != prefix) next
			rest = substr(rest, length(prefix) + 1)
			if (rest !~ /\//) print module(substr($0, 1, index($0, ":") - 1)), module(rest)
		}'
}

for folder in $(find bpf cli daemon include -name '*.[ch]' | sed 's/\/[^/]*$//' | LC_ALL=C sort -u); do
	includes "$folder" | LC_ALL=C sort -u >"$edges"
	found=$(LC_ALL=C tsort "$edges" 2>&1 >/dev/null | sed -n 's/^tsort: \([^ ]*\)$/ \1/p' |
		LC_ALL=C sort -u | tr -d '\n')
	[ -n "$found" ] || continue
	echo "$folder: these include each other:$found"
	failed=1
done
exit $failed
