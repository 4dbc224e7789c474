#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# CPythons that no distribution ships, built from Debian's own source packages with the compilers of
# Debian sid, in their own root directory: the build options of CPython determine its probe sites.
# As root. Not part of `make check`: the first build fetches ~500 MB, and each takes some minutes.
# Except 3.13-nogil (free-threaded), which belongs to the suites: this system's compiler builds it, at -O2
# and without modules that no test imports, so only the source's 22 MB are fetched, and two processors
# build it in two to three minutes.
#
#   build-interpreters.sh [BUILD...]    default: all below; prints the launchers, one per line
#
# They are stored beside the suites of fetch-interpreters.sh, as built-BUILD, where matrix.py finds them.
# An existing build is not built again. JOBS (2) compilers run at once. A source that the mirror does not
# have is reported and skipped; the exit status is then 77, as without apt or a network.
# shellcheck source-path=SCRIPTDIR source=suites.sh
. "$(dirname "$0")/suites.sh"

toolchain=$cache/toolchain
tools='gcc clang-21 lld-21 llvm-21 bolt-21 binutils make libc6-dev zlib1g-dev bash dash coreutils sed grep
	mawk findutils diffutils hostname'
builds='3.13-plain 3.13-switch 3.13-clang 3.13-nogil 3.14-tailcall 3.15-tailcall'

# Modules that no target imports: half of what there is to compile besides the interpreter itself
unused='_bz2 _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _multibytecodec _curses
_curses_panel _dbm _gdbm _decimal _elementtree pyexpat _lzma _sqlite3 _ssl _hashlib _tkinter _uuid readline
unicodedata'

# A build's compiler and arguments for configure
how() {
	case ${1#3.*-} in
	tailcall) echo 'CC=clang-21 --with-tail-call-interp' ;;
	clang) echo 'CC=clang-21' ;;
	plain) echo 'CC=gcc' ;;
	switch) echo 'CC=gcc --without-computed-gotos' ;;
	nogil) echo '--disable-gil' ;;
	*) return 1 ;;
	esac
}

get_toolchain() {
	[ -d "$toolchain/usr" ] && return
	say "fetching $tools"
	# shellcheck disable=SC2086 # a list of names
	fill_root sid "$work/toolchain" $tools
	ln -s mawk "$work/toolchain/usr/bin/awk"
	mkdir -p "$toolchain"
	mv "$work"/toolchain/* "$toolchain/"
}

# The source of CPython 3.N as packaged by Debian: the newest whose files the mirror still has.
get_source() {
	local dir=$toolchain/src/$1 suite
	[ -d "$dir" ] && return
	for suite in sid forky trixie; do
		say "looking for the source of $1 in $suite"
		use_suite "$suite" deb-src
		(cd "$work" && private_apt source --download-only "python$1") >"$work/log" 2>&1 || continue
		mkdir -p "$dir.new"
		tar -x -f "$work/python$1"_*.orig.tar.xz -C "$dir.new" --strip-components=1 \
			--no-same-owner
		mv "$dir.new" "$dir"
		return
	done
	say "no source of $1: $(tail -n 1 "$work/log")"
	return 77
}

# in_toolchain COMMAND: run it in the toolchain's root, with a /dev and /proc that vanish afterwards.
in_toolchain() {
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount sh -c 'mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" &&
		exec chroot "$1" /usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/ LC_ALL=C \
			sh -e -c "$2"' sh "$toolchain" "$1"
}

build() {
	local name=$1 version=${1%%-*} root=$toolchain/out/$1 lib
	lib=usr/lib/x86_64-linux-gnu
	get_toolchain
	get_source "$version" || return
	say "building $name"
	rm -rf "$root" "$toolchain/build/$name"
	mkdir -p "$toolchain/build/$name" "$root/$lib" "$root/usr/lib64"
	in_toolchain "cd /build/$name && /src/$version/configure --prefix=/usr --without-ensurepip \
		--disable-test-modules $(how "$name") && make -j ${JOBS:-2} && \
		make altinstall DESTDIR=/out/$name COMPILEALL_OPTS=-j0" >"$work/log" 2>&1 || {
		tail -n 30 "$work/log" >&2
		say "$name could not be built"
		return 1
	}
	cp -L "$toolchain/$lib"/{libc,libm,libz,ld-linux-x86-64}.so.[0-9] "$root/$lib/"
	ln -s "/$lib/ld-linux-x86-64.so.2" "$root/usr/lib64/"
	ln -s usr/lib64 "$root/lib64"
	launcher "$root" "$(basename "$(echo "$root"/usr/bin/python3.*[0-9t])")"
	mv "$root" "$cache/built-$name"
	rm -rf "${toolchain:?}/build/$name"
}

# Its log, beside the builds
keep_log() { cp "$work/log" "$cache/built-$1.log" && echo "$cache/built-$1.log"; }

# CPython's parallel make has linked before all object files were there. What it says then is kept, and
# the second make, which is not parallel, finds what is missing.
make_twice() {
	MAKEFLAGS='' make -j "${JOBS:-2}" && return
	find . -name '*.o' -printf '%T+ %p\n' | sort >"$cache/built-$name.objects"
	cp "$work/log" "$cache/built-$name.first.log"
	MAKEFLAGS='' make
}

# The same on this system, without the toolchain: the program, the standard library, shared libraries.
build_here() {
	local name=$1 version=${1%%-*} dir=$work/build root=$work/root lib=usr/lib/x86_64-linux-gnu
	local python stdlib
	command -v "${CC:-cc}" make >/dev/null || skip 'no compiler, or no make'
	get_source "$version" || return
	say "building $name"
	mkdir -p "$dir" "$root/$lib" "$root"/usr/{bin,lib64}
	# shellcheck disable=SC2046 # a list of arguments
	(cd "$dir" && "$toolchain/src/$version/configure" --prefix=/usr --without-ensurepip \
		--disable-test-modules OPT='-O2 -fwrapv -DNDEBUG' $(how "$name") &&
		printf '*disabled*\n%s\n' "$unused" >>Modules/Setup.local &&
		make_twice) >"$work/log" 2>&1 || {
		grep -E 'rror|\*\*\*|No such' "$work/log" | head -n 30 >&2
		say "$name could not be built: $(keep_log "$name")"
		return 1
	}
	[ ! -e "$cache/built-$name.first.log" ] || say "$name needed two makes: $cache/built-$name.first.log"
	python=python$("$dir/python" -c 'import sys; print("%d.%d" % sys.version_info[:2] + sys.abiflags)')
	stdlib=$root/usr/lib/$python
	cp "$dir/python" "$root/usr/bin/$python"
	cp -r "$toolchain/src/$version/Lib" "$stdlib"
	rm -rf "${stdlib:?}"/{test,idlelib,tkinter,turtledemo,ensurepip}
	mkdir "$stdlib/lib-dynload"
	cp -L "$dir"/build/lib.*/*.so "$stdlib/lib-dynload/"
	cp "$dir"/build/lib.*/_sysconfigdata*.py "$stdlib/"
	ldd "$dir/python" "$stdlib"/lib-dynload/*.so | sed -n 's/.*[ \t]\(\/[^ :]*\) (.*/\1/p' | sort -u |
		xargs -I{} cp -L {} "$root/$lib/"
	ln -s "/$lib/ld-linux-x86-64.so.2" "$root/usr/lib64/"
	ln -s usr/lib64 "$root/lib64"
	launcher "$root" "$python"
	# Targets do not write bytecode files.
	"$root/pyprof/$python" -m compileall -q -j 0 "$stdlib" >"$work/log" &&
		"$root/pyprof/$python" -c "import asyncio, json, threading" || return 1
	rm -rf "${cache:?}/built-$name"
	mv "$root" "$cache/built-$name"
}

make_build() {
	case $1 in
	*-nogil) build_here "$1" ;;
	*) build "$1" ;;
	esac
}

need_apt
lock builds
# shellcheck disable=SC2086 # a list of names
[ $# -gt 0 ] || set -- $builds
status=0
for name; do
	how "$name" >/dev/null || {
		say "no such build here: $name"
		exit 2
	}
	if [ -d "$cache/built-$name/pyprof" ] || make_build "$name"; then
		printf '%s\n' "$cache/built-$name"/pyprof/python3.*
	else
		status=$?
	fi
done
exit $status
