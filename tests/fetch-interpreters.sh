#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The Pythons of other Debian releases, unpacked side by side to run and trace them from there; the
# system's own packages are not touched. From the mirror, and checked with the keyring, that this
# machine's apt is set up with.
#
#   fetch-interpreters.sh [SUITE...]    default: all below; prints the launchers, one per line
#
# Each suite is a root directory of its own in $PYPROF_SUITES (default: pyprofd-tests in
# $XDG_CACHE_HOME), complete with its libc, so that `chroot` works as well. SUITE/pyprof/python3.X runs
# an interpreter in place. A suite that is there is not fetched again. Exits with 77 where there is
# no apt or no network, which is a skipped test.
set -eu

cache=${PYPROF_SUITES:-${XDG_CACHE_HOME:-$HOME/.cache}/pyprofd-tests}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "$*" >&2; }
skip() {
	say "$*"
	exit 77
}

# What is fetched of a suite, with everything that it depends on.
packages() {
	case $1 in
	bullseye) echo python3.9 python3-gevent ;;
	bookworm) echo python3.11 gunicorn python3-gevent ;;
	trixie) echo python3.13 python3-gevent ;;
	sid) echo python3.13 python3.14 python3.15 python3-gevent ;;
	*) return 1 ;;
	esac
}

# Of an apt sources file in deb822 form: the first stanza of Debian itself (not of its security
# archive), without what depends on the release.
stanza() {
	awk -v RS= '/(^|\n)Types:/ && /(^|\n)URIs:[^\n]*\/debian\/?(\n|$)/ { print; exit }' |
		sed -n '/^URIs:/p; /^Signed-By:/p'
}

# The same from a list in one-line form.
one_line() {
	sed -n 's#^deb  *\(\[[^]]*\]\)\{0,1\} *\([a-z+]*://[^ ]*/debian/\{0,1\}\) .*#\1 \2#p' |
		head -n 1 | sed 's#.*signed-by=\([^] ]*\).*\] \(.*\)#URIs: \2\nSigned-By: \1#; t
			s#^\(\[.*\]\)\{0,1\} *#URIs: #'
}

sources() {
	local found
	found=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null | stanza || true)
	[ -n "$found" ] ||
		found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
			one_line || true)
	[ -n "$found" ] || return 1
	case $found in
	*Signed-By:*) ;;
	*) found="$found
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg" ;;
	esac
	printf 'Types: deb\n%s\nSuites: %s\nComponents: main\n' "$found" "$1"
}

# apt with a state of its own: it sees no package as installed, so it fetches all that is needed.
private_apt() {
	apt-get -q -o Dir::State="$work/state" -o Dir::State::lists="$work/lists" \
		-o Dir::State::status=/dev/null -o Dir::Cache="$work/cache" \
		-o Dir::Etc::sourcelist="$work/suite.sources" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null -o Dir::Etc::main=/dev/null \
		-o Acquire::Languages=none -o Acquire::Check-Valid-Until=false \
		-o Debug::NoLocking=1 -o APT::Sandbox::User= "$@"
}

# A merged /usr, as every release since bookworm has it: the dynamic linker is where programs look.
make_root() {
	local d
	mkdir -p "$1"/{dev,etc,proc,run,sys,tmp,var,usr/bin,usr/sbin,usr/lib,usr/lib64}
	for d in bin sbin lib lib64; do
		ln -sfn "usr/$d" "$1/$d"
	done
}

# unpack DEB ROOT: tar would replace the links of a merged /usr by directories.
unpack() { dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --keep-directory-symlink --no-same-owner; }

# launcher ROOT PYTHON: a program that runs it in place, with the root's own libraries.
launcher() {
	local ld
	# The link may be absolute: it is meant to be followed in the root.
	ld=$(basename "$(readlink "$1/lib64/ld-linux-x86-64.so.2")")
	mkdir -p "$1/pyprof"
	cat >"$1/pyprof/$2" <<-END
		#!/bin/sh
		top=\$(cd "\$(dirname "\$0")/.." && pwd)
		export PYTHONHOME="\$top/usr" PYPROF_LAUNCHER="\$top/pyprof/$2"
		exec "\$top/usr/lib/x86_64-linux-gnu/$ld" --library-path \\
			"\$top/usr/lib/x86_64-linux-gnu" "\$top/usr/bin/$2" "\$@"
	END
	chmod 755 "$1/pyprof/$2"
}

fetch() {
	local suite=$1 root=$work/root python deb
	say "fetching $suite: $(packages "$suite")"
	rm -rf "$work/cache" "$work/lists" "$work/state" "$root"
	mkdir -p "$work"/{state,lists/partial,cache/archives/partial}
	sources "$suite" >"$work/suite.sources" || skip 'no Debian mirror in the configuration of apt'
	private_apt update >"$work/log" 2>&1 || skip "$suite cannot be fetched: $(tail -n 1 "$work/log")"
	# shellcheck disable=SC2046 # a list of names
	private_apt install -y --download-only --no-install-recommends $(packages "$suite") \
		>"$work/log" 2>&1 || skip "$suite cannot be fetched: $(tail -n 1 "$work/log")"
	make_root "$root"
	for deb in "$work"/cache/archives/*.deb; do
		unpack "$deb" "$root"
	done
	for python in "$root"/usr/bin/python3.*[0-9]; do
		launcher "$root" "${python##*/}"
	done
	mkdir -p "$cache"
	rm -rf "${cache:?}/$suite"
	mv "$root" "$cache/$suite"
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	skip 'not a Debian: no packages of its releases'
fi
[ $# -gt 0 ] || set -- bullseye bookworm trixie sid
for suite; do
	packages "$suite" >/dev/null || {
		say "no such suite here: $suite"
		exit 2
	}
	[ -d "$cache/$suite/pyprof" ] || fetch "$suite"
	printf '%s\n' "$cache/$suite"/pyprof/python3.*
done
