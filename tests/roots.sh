#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Root directories of Debian releases with dpkg's database, to build and install packages in: made by
# mmdebstrap from the mirror of this machine's apt configuration, and kept in the cache of
# fetch-interpreters.sh.
#
#   roots.sh build SUITE    with what it takes to build the package; prints the directory
#   roots.sh clean SUITE    a minimal installation, as a tar file; prints its path
#
# An existing one is not made again. Exits with 77 if there is no mirror or no mmdebstrap: a skipped test.
set -eu

# shellcheck source-path=SCRIPTDIR source=suites.sh
. "$(dirname "$0")/suites.sh"
top=$(cd "$(dirname "$0")/.." && pwd)

# What `debian/control` needs to build, without versions and alternatives
build_depends() {
	sed -n '/^Build-Depends:/,/^[A-Z]/p' "$top/packaging/debian/control" | sed '$d' |
		sed 's/^Build-Depends://; s/<[^>]*>//; s/([^)]*)//; s/,.*//; s/|.*//' | tr -s ' \n' ',' |
		sed 's/^,//; s/,$//'
}

# bootstrap SUITE OUTPUT PACKAGES
bootstrap() {
	local suite=$1 output=$2 packages=$3
	need_apt
	command -v mmdebstrap >/dev/null || skip 'no mmdebstrap'
	sources "$suite" deb >"$work/suite.sources" || skip 'no Debian mirror in the configuration of apt'
	mkdir -p "$cache"
	say "making ${output##*/}"
	# The mirror's name stays on this machine: the root gets it as its own configuration.
	mmdebstrap --mode=root --variant=minbase --include="$packages" \
		--aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' \
		"$suite" "$work/${output##*/}" "$work/suite.sources" >"$work/log" 2>&1 ||
		skip "$suite cannot be fetched: $(tail -n 3 "$work/log")"
	mv "$work/${output##*/}" "$output"
}

[ $# -eq 2 ] || { say "usage: roots.sh build|clean SUITE"; exit 2; }
case $1 in
build)
	[ -d "$cache/build-$2" ] || bootstrap "$2" "$cache/build-$2" "build-essential,$(build_depends)"
	echo "$cache/build-$2"
	;;
clean)
	[ -e "$cache/clean-$2.tar" ] || bootstrap "$2" "$cache/clean-$2.tar" systemd
	echo "$cache/clean-$2.tar"
	;;
*)
	say "no such kind of root: $1"
	exit 2
	;;
esac
