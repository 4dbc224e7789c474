#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every option in --help is in the man page, and vice versa.
set -eu
cd "$(dirname "$0")/../.."
: "${PYPROF_BUILD:=build}"
bad=0

# Prints --help of a program and of each of its commands.
help_of() {
	"$1" --help
	"$1" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\).*/\1/p' | while read -r command; do
		"$1" "$command" --help
	done
}

check() {
	program=$1 page=$2
	help_of "$PYPROF_BUILD/$program" | grep -Eo '^ *(-[a-zA-Z], )?--?[a-zA-Z][a-z-]*' |
		tr ',' '\n' | tr -d ' ' | LC_ALL=C sort -u >"$tmp/help"
	[ -s "$tmp/help" ] || {
		echo "$program --help names no options"
		bad=1
	}
	# mdoc: `.It Fl d , -duration Ar n` describes -d and --duration.
	sed -n 's/^\.It Fl \(-*[a-zA-Z][a-z-]*\)\( , \)*\(-[a-z-]*\)*.*/-\1 -\3/p' "$page" | tr ' ' '\n' |
		grep -vx -- - | LC_ALL=C sort -u >"$tmp/man"
	for word in $(LC_ALL=C comm -23 "$tmp/help" "$tmp/man"); do
		echo "$page does not have $word of $program --help"
		bad=1
	done
	for word in $(LC_ALL=C comm -13 "$tmp/help" "$tmp/man"); do
		echo "$program --help does not have $word of $page"
		bad=1
	done
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
check pyprofd packaging/pyprofd.8
check pyprofctl packaging/pyprofctl.1
exit $bad
