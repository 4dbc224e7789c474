#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Assemble the tree from which packages are built: source.sh DIRECTORY PAGE
#
# It has the files that git knows, as they are in the working tree, the bundled pages of the HTML
# format (PAGE, so that building needs no npm), and debian/ at the top. Times of all files are that of
# the last commit. Prints the version.
set -eu

out=$1 page=$2
cd "$(dirname "$0")/.."
version=$(sed -n 's/^#define PYPROF_VERSION "\(.*\)"$/\1/p' include/pyprof/version.h)
[ "$version" = "$(sed -n '1s/.*(\(.*\)).*/\1/p' packaging/debian/changelog)" ] || {
	echo "packaging/debian/changelog is not of version $version" >&2
	exit 1
}
# The parts that the programs contain
parts=$(sed -n 's/^[[:space:]]*part .*"\(.*\)"$/\1/p' daemon/format/html/page.S)
for part in $parts; do
	[ -s "$page/$part" ] || {
		echo "$page has no bundled $part: without npm there are no packages" >&2
		exit 1
	}
done
rm -rf "$out"
mkdir -p "$out/page"
git ls-files -z -- Makefile README.md LICENSE .github bpf cli daemon include packaging tests |
	xargs -0 cp --parents -t "$out"
for part in $parts licences.txt; do
	cp "$page/$part" "$out/page"
done
: >"$out/page/page.stamp"
mv "$out/packaging/debian" "$out/debian"
{
	printf '\nFiles: page/*\nCopyright:\n'
	sed -n 's/^Copyright (c) //p; s/^Copyright //p' "$page/licences.txt" | sort -u | sed 's/^/ /'
	printf 'License: ISC and Apache-2.0 and Expat and BSD-3-clause\n'
	printf ' The page of the HTML format, with these libraries:\n .\n'
	# Policy wants a reference where Debian has the text itself.
	awk '/^-----/ { apache = 0 }
		/\(Apache-2\.0\)$/ { apache = 1; print $0 "\n\nThe text is in /usr/share/common-licenses/Apache-2.0.\n" }
		!apache' "$page/licences.txt" | sed 's/[[:space:]]*$//; s/^$/./; s/^/ /'
} >>"$out/debian/copyright"
find "$out" -exec touch -h -d "@$(git log -1 --format=%ct)" {} +
echo "$version"
