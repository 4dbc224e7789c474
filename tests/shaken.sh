#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Complete checks under conditions that must not matter. A program that fails in one of them, or passes only when it
# is run again alone, has a defect, or the product has: `make check-shaken`, hours, as root.
#
#   alone    as `make check`
#   beside   four neighbours that use CPUs, and one that writes to the disk
#   slower   each hit of a probe takes 3 us longer, by a program that spins at the same sites
#   one      on one CPU
#   order    programs of each section in random order (the seed is printed; PYPROF_TEST_ORDER repeats it)
#
# shaken.sh [KIND...]    default: alone three times, then the others once
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- alone alone alone beside slower one order

out=$(realpath -m "${PYPROF_BUILD:-build}/shaken")
load=()
mkdir -p "$out"
end_load() {
	[ ${#load[@]} -eq 0 ] || kill "${load[@]}" 2>/dev/null || :
	rm -f "$out/disk"
	load=()
}
trap end_load EXIT

begin_load() {
	local program
	# shellcheck disable=SC2016 # the inner shell expands it
	for program in ':' ':' ':' ':' 'dd if=/dev/zero of="$1" bs=1M count=256 conv=fsync status=none'; do
		timeout 7200 sh -c "while :; do $program; done" sh "$out/disk" &
		load+=($!)
	done
}

n=0 failed=0
: >"$out/summary"
for kind; do
	n=$((n + 1))
	log=$out/$n-$kind.log
	command=(make check "RESULTS=$out/$n-$kind")
	case $kind in
	alone) ;;
	beside) begin_load ;;
	# patience.py measures hits that do not spin: where hits are so slow, it finds this.
	slower) command=(env PYPROF_PATIENCE=8 "${command[@]}" HITS_SLOWER_NS=3000 O=build/slower) ;;
	one) command=(taskset -c 0 "${command[@]}") ;;
	order) command=(env "PYPROF_TEST_ORDER=${PYPROF_TEST_ORDER:-$(date +%s)}" "${command[@]}") ;;
	*)
		echo "shaken.sh: no kind '$kind': alone, beside, slower, one, order" >&2
		exit 2
		;;
	esac
	begun=$SECONDS rc=0
	echo "== $n $kind: ${command[*]} > $log"
	"${command[@]}" >"$log" 2>&1 || rc=$?
	end_load
	[ $rc -eq 0 ] || failed=1
	{
		echo "$n $kind: $((SECONDS - begun)) s, status $rc, $(tail -n 1 "$log")"
		grep -E '^(FAILED|passed when run alone)' "$log" || :
	} | tee -a "$out/summary"
done
echo "== summary"
cat "$out/summary"
exit $failed
