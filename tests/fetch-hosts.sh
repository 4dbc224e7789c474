#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs of a Debian release that embed Python, with all their dependencies, unpacked in their own
# root directory, see fetch-interpreters.sh.
#
#   fetch-hosts.sh SUITE...    prints the root directories, one per line
set -eu

# shellcheck source-path=SCRIPTDIR source=suites.sh
. "$(dirname "$0")/suites.sh"

packages() {
	echo coreutils bash dash gdb vim-nox uwsgi-core uwsgi-plugin-python3 apache2 libapache2-mod-wsgi-py3
	case $1 in
	bookworm) echo postgresql-15 postgresql-plpython3-15 ;;
	trixie) echo postgresql-17 postgresql-plpython3-17 ;;
	*) return 1 ;;
	esac
}

need_apt
for suite; do
	list=$(packages "$suite") || {
		say "no such suite here: $suite"
		exit 2
	}
	root=$cache/hosts-$suite
	if [ ! -d "$root" ]; then
		say "fetching $suite: ${list//$'\n'/ }"
		# shellcheck disable=SC2086 # a list of names
		fill_root "$suite" "$work/root" $list
		mkdir -p "$cache"
		mv "$work/root" "$root"
	fi
	echo "$root"
done
