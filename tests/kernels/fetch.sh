#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Kernels of Debian releases, from the mirror of this machine's apt configuration, unpacked into the
# cache of fetch-interpreters.sh and installed nowhere.
#
#   fetch.sh SUITE...    prints "SUITE VERSION DIRECTORY" of each; DIRECTORY has vmlinuz
#
# A suite that cannot be fetched is reported and left out. An existing one is not fetched again. Exits
# with 77 if none can be had: a skipped test.
set -eu

# shellcheck source-path=SCRIPTDIR/.. source=suites.sh
. "$(dirname "$0")/../suites.sh"
kernels=$cache/kernels

# The packages that linux-image-amd64 leads to; which of them has the kernel depends on the release.
packages() {
	private_cache depends --recurse --no-recommends --no-suggests --no-breaks --no-conflicts \
		--no-replaces --no-enhances linux-image-amd64 2>/dev/null |
		grep -xE 'linux-(image|binary|modules)-[0-9].*' | sort -u
}

# fetch SUITE
fetch() {
	local suite=$1 out=$work/kernel name
	use_suite "$suite"
	rm -rf "$work/debs" "$out" "$work/unpacked"
	mkdir -p "$work/debs" "$out" "$work/unpacked"
	for name in $(packages); do
		say "fetching $suite: $name"
		(cd "$work/debs" && private_apt download "$name" >"$work/log" 2>&1) ||
			skip "$suite cannot be fetched: $(tail -n 1 "$work/log")"
	done
	for name in "$work"/debs/*.deb; do
		[ -e "$name" ] || skip "$suite has no linux-image-amd64"
		# Neither the modules nor the symbols: nothing that these tests need is a module.
		dpkg-deb --fsys-tarfile "$name" | tar -x -C "$work/unpacked" --wildcards --no-same-owner \
			'./boot/vmlinuz-*' './usr/lib/modules/*/vmlinuz' 2>/dev/null || true
	done
	find "$work/unpacked" -name 'vmlinuz*' -exec cp {} "$out/vmlinuz" \;
	[ -s "$out/vmlinuz" ] || skip "$suite: no kernel in $(ls "$work/debs")"
	# .../vmlinuz-VERSION or .../VERSION/vmlinuz
	find "$work/unpacked" -name 'vmlinuz*' | sed 's|.*/vmlinuz-||; s|/vmlinuz$||; s|.*/||' >"$out/version"
	mkdir -p "$kernels"
	rm -rf "${kernels:?}/$suite"
	mv "$out" "$kernels/$suite"
}

need_apt
[ $# -gt 0 ] || { say 'usage: fetch.sh SUITE...'; exit 2; }
found=77
for suite; do
	# In a subshell: `skip` ends it.
	[ -s "$kernels/$suite/vmlinuz" ] || (fetch "$suite") || continue
	echo "$suite $(cat "$kernels/$suite/version") $kernels/$suite"
	found=0
done
exit $found
