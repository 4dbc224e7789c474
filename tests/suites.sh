#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Packages of other Debian releases, unpacked below a directory: functions for fetch-interpreters.sh
# and build-interpreters.sh. To be sourced. Sets $cache (the directory of the suites) and $work (removed
# at the end).
set -eu

# shellcheck disable=SC2034 # for those that source this
cache=${PYPROF_SUITES:-${XDG_CACHE_HOME:-$HOME/.cache}/pyprofd-tests}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "$*" >&2; }
skip() {
	say "$*"
	exit 77
}

# lock WHAT: until this script ends, no other one makes these, because sections of `make check` run beside each other.
lock() {
	mkdir -p "$cache"
	exec 9>"$cache/$1.lock"
	flock 9
}

need_apt() {
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
		skip 'not a Debian: no packages of its releases'
	fi
}

# From an apt sources file in deb822 form: the first stanza of Debian itself (not of its security
# archive), without the fields that depend on the release.
stanza() {
	awk -v RS= '/(^|\n)Types:/ && /(^|\n)URIs:[^\n]*\/debian\/?(\n|$)/ { print; exit }' |
		sed -n '/^URIs:/p; /^Signed-By:/p'
}

# The same from a sources file in one-line form.
one_line() {
	sed -n 's#^deb  *\(\[[^]]*\]\)\{0,1\} *\([a-z+]*://[^ ]*/debian/\{0,1\}\) .*#\1 \2#p' |
		head -n 1 | sed 's#.*signed-by=\([^] ]*\).*\] \(.*\)#URIs: \2\nSigned-By: \1#; t
			s#^\(\[.*\]\)\{0,1\} *#URIs: #'
}

# sources SUITE TYPES
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
	printf 'Types: %s\n%s\nSuites: %s\nComponents: main\n' "$2" "$found" "$1"
}

# Run apt with its own state, in which no package is installed, so that it fetches all dependencies.
private_apt() { private apt-get -q "$@"; }
private_cache() { private apt-cache "$@"; }
private() {
	"$1" -o Dir::State="$work/state" -o Dir::State::lists="$work/lists" \
		-o Dir::State::status=/dev/null -o Dir::Cache="$work/cache" \
		-o Dir::Etc::sourcelist="$work/suite.sources" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null -o Dir::Etc::main=/dev/null \
		-o Acquire::Languages=none -o Acquire::Check-Valid-Until=false \
		-o Debug::NoLocking=1 -o APT::Sandbox::User= "${@:2}"
}

# Make a merged /usr, as in every release since bookworm: programs expect the dynamic linker there.
make_root() {
	local d
	mkdir -p "$1"/{dev,etc,proc,run,sys,tmp,var,usr/bin,usr/sbin,usr/lib,usr/lib64}
	for d in bin sbin lib lib64; do
		ln -sfn "usr/$d" "$1/$d"
	done
}

# unpack DEB ROOT: tar would replace the links of a merged /usr by directories.
unpack() { dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --keep-directory-symlink --no-same-owner; }

# launcher ROOT PYTHON: write a program that runs it in place, with the root's own libraries.
launcher() {
	local ld
	# The link may be absolute, relative to the root.
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

# use_suite SUITE [TYPES]: the release that private_apt uses from here on.
use_suite() {
	rm -rf "$work/cache" "$work/lists" "$work/state"
	mkdir -p "$work"/{state,lists/partial,cache/archives/partial}
	sources "$1" "${2:-deb}" >"$work/suite.sources" || skip 'no Debian mirror in the configuration of apt'
	private_apt update >"$work/log" 2>&1 || skip "$1 cannot be fetched: $(tail -n 1 "$work/log")"
}

# fill_root SUITE ROOT PACKAGE...: unpack the packages and all their dependencies.
fill_root() {
	local suite=$1 root=$2 deb
	shift 2
	rm -rf "$root"
	use_suite "$suite"
	private_apt install -y --download-only --no-install-recommends "$@" >"$work/log" 2>&1 ||
		skip "$suite cannot be fetched: $(tail -n 1 "$work/log")"
	make_root "$root"
	for deb in "$work"/cache/archives/*.deb; do
		unpack "$deb" "$root"
	done
}
