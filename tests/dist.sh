#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Tests of the tarball: dist.sh PAGE SUITE
#
# It is built in two directories that are not this one, and both must be equal, byte by byte. Its
# programs then run in a clean root directory of the release, which has none of their libraries and must
# not be older than this machine's. Exits with 77 if the root directory cannot be had.
set -eu

page=$1 suite=$2
top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

cd "$top"
# Both copies first: the tree must not change between them.
for copy in "$work/a" "$work/another/place"; do
	git clone -q --no-checkout . "$copy"
	git ls-files -z | xargs -0 cp --parents -t "$copy"
done
for copy in "$work/a" "$work/another/place"; do
	make -C "$copy" dist-inner PAGE="$page" -o "$page/page.stamp" >"$work/log" 2>&1 || {
		tail -n 20 "$work/log"
		exit 1
	}
done
first=$(echo "$work"/a/build/pyprofd-*.tar.gz)
cmp "$first" "$work"/another/place/build/pyprofd-*.tar.gz
echo "two builds are equal: $(sha256sum <"$first")"

mkdir "$root"
tar -x -f "$("$top/tests/roots.sh" clean "$suite")" -C "$root"
tar -xz -f "$first" -C "$root/opt"
for program in pyprofd pyprofctl; do
	# $ORIGIN takes /proc.
	unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" \
		env -i sh -c "/opt/pyprofd-*/bin/$program --version"
done
