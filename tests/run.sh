#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs tests and adds up their results. Exit statuses of Criterion binaries are not reliable (a run
# in which all tests were skipped exits with 0): the script counts the results in their TAP output, and
# a binary whose output is incomplete has failed.
#
#   run.sh [--jobs N] LABEL BINARY...      Criterion binaries
#   run.sh --node LABEL FILE...            tests for Node.js, which write TAP as well
#   run.sh --fuzz SECONDS LABEL BINARY...  libFuzzer binaries, from tests/fuzz/corpus/NAME/
#   run.sh --fuzz-replay LABEL BINARY...   fuzzers linked with driver.c: replay the corpus
#   run.sh --command LABEL CMD [ARG]...    any command: 0 passed, 77 skipped, else failed
#   run.sh --programs N A B C BINARY...    run.sh A B C BINARY for each, N at a time;
#                                          also --programs N --node LABEL FILE...; N+M: N
#                                          where traps are slow, else M more
#   run.sh --sections GROUP...             make run-SECTION for each, then the last line
#   run.sh --stats [RESULTS]               the whole table of times of the last run: stats.py
#
# A GROUP is A,B,C+X,Y: sections in sequence, and beside them X and then Y, which get the processor time
# that the others leave idle. Their output follows when the group has ended.
#
# A program that fails is run once more, alone, after all sections, if at most three have failed. If it passes
# then, the last lines name it and the place of its first output.
#
# Environment: RESULTS (file that collects "passed failed skipped name"; RESULTS.times collects
# "begin end cpu section name note", in seconds, cpu being the CPU time of the program and its children), TEST_TIMEOUT
# (seconds, times PYPROF_PATIENCE), PYPROF_TEST_ORDER (a seed: programs in random order), SUBMAKE, and CI=true or
# PYPROF_TEST_REQUIRE; with either of these a skipped test is a failure.
set -eu

: "${RESULTS:=/dev/null}" "${TEST_TIMEOUT:=900}" "${SUBMAKE:=make}"
top=$(cd "$(dirname "$0")/.." && pwd)
corpora=$top/tests/fuzz/corpus
work=$(mktemp -d)
beside= # the process group of the sections beside others
trap '[ -z "$beside" ] || kill -- "-$beside" 2>/dev/null; rm -rf "$work"' EXIT
# Self-test verdicts on interpreters are not reused, and their cache is removed afterwards. Programs that
# run beside each other share one.
export CACHE_DIRECTORY=${PYPROF_TEST_VERDICTS:-$work/cache}
[ -d "$CACHE_DIRECTORY" ] || mkdir -m 700 "$CACHE_DIRECTORY"
failed=0 begun=0 begun_cpu=0
again=() # how this program is run again
passed_alone=()

strict() { [ "${CI:-}" = true ] || [ -n "${PYPROF_TEST_REQUIRE:-}" ]; }

# keep_failure NAME: keep the output of a failed program, and how to run it again: its environment and its command.
keep_failure() {
	local dir=$RESULTS.failed/$1
	[ "$RESULTS" != /dev/null ] || return 0
	mkdir -p "$dir"
	cp "$work/log" "$dir/log" 2>/dev/null || :
	[ ${#again[@]} -eq 0 ] || [[ $RESULTS == */again.results ]] || {
		env -0 | grep -zvE '^(RESULTS|PYPROF_TEST_VERDICTS|CACHE_DIRECTORY|M(AKE)?FLAGS)='
		printf '%s\0' "RESULTS=$dir/again.results" "$top/tests/run.sh" "${again[@]}"
	} >"$dir/again"
}

# For the end of the output: Criterion's lines with text about failed assertions and what a harness found not to be
# exact (traced_is_exact), or each failed test of Node.js with its error and where that was; else the end of
# the log.
keep_gist() {
	local text
	[ "$RESULTS" != /dev/null ] && [ -e "$work/log" ] || return 0
	text=$(sed '/^  error: |-$/{N;s/|-\n *//}' "$work/log" |
		grep -E '^\[(----\] *[^ ]|FAIL|ERR |CRASH)|, not 0$|^not ok |^  error: |^    .*/test_[a-z_]*\.mjs:[0-9]') ||
		text=$(tail -n 20 "$work/log")
	text=$(head -n 20 <<<"$text" | cut -c 1-200)
	# In one write: sections that run beside each other write to the same file.
	printf '%s:\n%s\n' "$1" "$text" >>"$RESULTS.why"
}

# record NAME PASSED FAILED SKIPPED: record the result, and print it.
record() {
	local name=$1 p=$2 f=$3 s=$4 word=ok

	if [ "$s" -gt 0 ]; then
		word=skip
		! strict || failed=1
	fi
	if [ "$f" -gt 0 ]; then
		word=FAIL
		failed=1
		keep_failure "$name"
		keep_gist "$name"
	fi
	echo "$p $f $s $name" >>"$RESULTS"
	printf '  %-6s %s: %d passed, %d failed, %d skipped\n' "$word" "$name" "$p" "$f" "$s"
}

# Microseconds.
now() { echo "${EPOCHREALTIME/[.,]/}"; }

# ms VAR TIME: add a time as `times` prints it, as 1m2.345s, to VAR, in ms.
ms() {
	local min=${2%m*} s=${2#*m}
	s=${s%s}
	printf -v "$1" %d $((${!1} + min * 60000 + 10#${s/[.,]/}))
}

# spent VAR: the CPU time of all children that have ended, in ms. Not in a subshell: it has others.
spent() {
	local user sys file=$work/spent.$BASHPID # programs run beside each other
	times >"$file"
	{ read -r _ && read -r user sys; } <"$file"
	printf -v "$1" 0
	ms "$1" "$user"
	ms "$1" "$sys"
}

# took NAME START CPU NOTE: record the time since START, and the CPU time since CPU.
took() {
	local cpu
	spent cpu
	cpu=$((cpu - $3))
	[ "$RESULTS" = /dev/null ] ||
		printf '%.2f %.2f %.2f %s %s %s\n' "$2e-6" "$(now)e-6" "${cpu}e-3" \
			"${PYPROF_SECTION:--}" "$1" "$4" >>"$RESULTS.times"
}

# run CMD...: run with a time limit, in its own process group, which is killed afterwards.
run() {
	local uptime
	limit=$(printf %.0f "$(awk "BEGIN { print $TEST_TIMEOUT * ${PYPROF_PATIENCE:-1} }")")
	begun=$(now)
	spent begun_cpu
	# When a test that waits gives up and says for what: see harness/patience.h.
	read -r uptime _ </proc/uptime
	PYPROF_TEST_UNTIL=$((${uptime%.*} + limit * 9 / 10)) timeout -k 10 "$limit" "$@" >"$work/log" 2>&1
}

# Sanitizers write here; any file means failure, also from child processes and at exit, where
# Criterion would not notice.
san_begin() {
	rm -f "$work"/san.*
	export ASAN_OPTIONS="log_path=$work/san:detect_leaks=1:${ASAN_USER_OPTIONS:-}"
	export UBSAN_OPTIONS="log_path=$work/san:print_stacktrace=1"
}

why() {
	case $1 in
	124 | 137) echo "took longer than $limit s" ;;
	*) echo "ended with status $1" ;;
	esac
}

count() { grep -c "$1" "$work/tap" || true; }

# The slowest test of a Criterion program that has several, with its seconds.
slowest_test() {
	sed -n 's/^\(not \)\?ok [0-9 ]*- \([^ ]*\) .*(\([0-9.]*\)s)$/\3 \2/p' "$work/tap" |
		sort -rn | awk 'NR == 1 { t = $2 ", " $1 " s" } END { if (NR > 1) print t }'
}

# judge NAME STATUS: read the TAP file; incomplete output is a failure.
judge() {
	local name=$1 rc=$2 p f s plan

	took "$name" "$begun" "$begun_cpu" "$(slowest_test)"
	s=$(count '^ok .*# SKIP')
	p=$(($(count '^ok ') - s))
	f=$(count '^not ok ')
	plan=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' "$work/tap" | head -n 1)
	if [ "${plan:-none}" != $((p + f + s)) ] || { [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; }; then
		f=$((f + 1))
		echo "$name: $(why "$rc"); ${plan:-no} tests announced" >>"$work/log"
	fi
	if [ -n "$(find "$work" -name 'san.*')" ]; then
		f=$((f + 1))
		cat "$work"/san.* >>"$work/log"
	fi
	[ "$f" -eq 0 ] || cat "$work/log"
	sed -n 's/^ok [0-9 ]*- *\(.*\)  *# SKIP \(.*\)/         \1 \2/p' "$work/tap"
	record "$name" "$p" "$f" "$s"
}

# Names, each ended by a NUL, in random order if PYPROF_TEST_ORDER has a seed.
in_order() {
	if [ -n "${PYPROF_TEST_ORDER:-}" ]; then
		shuf -z --random-source=<(openssl enc -aes-128-ctr -nosalt -pbkdf2 \
			-pass "pass:$PYPROF_TEST_ORDER" </dev/zero 2>/dev/null)
	else
		cat
	fi
}

criterion() {
	local jobs=$1 label=$2 bin bins name rc
	shift 2
	mapfile -d '' -t bins < <(printf '%s\0' "$@" | in_order)
	for bin in "${bins[@]}"; do
		name=${bin##*/tests/}
		name=$label/${name#*/}
		: >"$work/tap"
		san_begin
		rc=0
		again=(--jobs "${jobs:-1}" "$label" "$bin")
		run "$bin" ${jobs:+--jobs "$jobs"} --tap="$work/tap" || rc=$?
		judge "${name/test_/}" $rc
	done
}

node_() {
	local label=$1 file name rc
	shift
	for file; do
		name=${file##*/}
		name=${name#test_}
		: >"$work/tap"
		rc=0
		again=(--node "$label" "$file")
		run node --test-reporter=tap --test-reporter-destination="$work/tap" "$file" || rc=$?
		[ "$rc" -eq 0 ] || cat "$work/tap" >>"$work/log"
		# Print the figures that a test measured.
		sed -n 's/^# \([a-z]*: .*[0-9] s.*\)/         \1/p' "$work/tap"
		judge "$label/${name%.mjs}" $rc
	done
}

command_() {
	local name=$1 rc=0
	shift
	again=(--command "$name" "$@")
	run "$@" || rc=$?
	took "$name" "$begun" "$begun_cpu" ""
	[ $rc -eq 0 ] || cat "$work/log"
	case $rc in
	0) record "$name" 1 0 0 ;;
	77) record "$name" 0 0 1 ;;
	*)
		echo "$name: $(why $rc)"
		record "$name" 0 1 0
		;;
	esac
}

# The seed corpus in the tree is only read; the fuzzer writes new inputs to a temporary corpus.
fuzz() {
	local seconds=$1 label=$2 bin short
	shift 2
	for bin; do
		short=${bin##*/fuzz_}
		mkdir -p "$work/corpus/$short"
		set -- "$work/corpus/$short"
		[ -d "$corpora/$short" ] && set -- "$@" "$corpora/$short"
		command_ "$label/$short" "$bin" -max_total_time="$seconds" -timeout=60 \
			-rss_limit_mb=2048 -artifact_prefix="$(dirname "$bin")/" "$@"
	done
}

fuzz_replay() {
	local label=$1 bin
	shift
	for bin; do
		command_ "$label/${bin##*/fuzz_}" "$bin" "$corpora/${bin##*/fuzz_}"
	done
}

# In some virtual machines, a system call, a page fault or a probe's hit takes 7 times as long as usual, and more.
# Programs need the CPUs all the time there, and do not wait.
slow_traps() { awk "BEGIN { exit ${PYPROF_PATIENCE:-1} < 3.5 }"; }

# programs N A B C BINARY...: prints the output of each program when it is complete.
programs() {
	local n=$1 k=3
	case $n in
	*+*) if slow_traps; then n=${n%+*}; else n=$((${n%+*} + ${n#*+})); fi ;;
	esac
	[ "$2" != --node ] || k=2
	local args=("${@:2:k}")
	shift $((k + 1))
	export PYPROF_TEST_VERDICTS=$CACHE_DIRECTORY
	printf '%s\0' "$@" | in_order | xargs -0 -n 1 -P "$n" "$0" --whole "$work/lock" "${args[@]}"
}

# whole LOCK ARG...
whole() {
	local lock=$1 text rc=0
	shift
	text=$("$0" "$@" 2>&1) || rc=$?
	flock "$lock" printf '%s\n' "$text"
	return $rc
}

# The kernel's message about breakpoints that stay in a process because the process that attached or
# detached them was killed meanwhile. It names that process: a program, a helper or a test of the project.
complaint='uprobe: (pyprof|test_|python).*leaking uprobe'

# Prints these lines of the kernel log, with their times; fails if the log cannot be read.
kernel_log() { dmesg >"$work/dmesg" && { grep -E "$complaint" "$work/dmesg" || true; }; }

# kernel_log_check BEFORE: fails if there are such lines that are not in this file.
kernel_log_check() {
	if [ ! -e "$1" ] || ! kernel_log >"$work/klog"; then
		echo "         kernel-log: dmesg cannot be read here"
		record kernel-log 0 0 1
		return
	fi
	: >"$work/log"
	if grep -vxFf "$1" "$work/klog" >"$work/log"; then
		record kernel-log 0 1 0
		cat "$work/log"
	else
		record kernel-log 1 0 0
	fi
}

# Programs that failed once: each is run again, alone, with what it had in its environment. Machines hiccup; more
# than three are no hiccup, and what cannot be built fails again.
run_again() {
	local name dir line
	[ "$(awk '$2 > 0' "$RESULTS" | wc -l)" -le 3 ] || return 0
	while read -r name; do
		dir=$RESULTS.failed/$name
		[ -s "$dir/again" ] || continue
		echo "== once more, alone: $name"
		: >"$dir/again.results"
		(cd "$top" && xargs -0 -x -a "$dir/again" env -i) || :
		line=$(awk 'NR == 1 && $1 > 0 && $2 == 0' "$dir/again.results")
		[ -n "$line" ] || continue
		awk -v name="$name" -v line="$line" '$4 == name && $2 > 0 { $0 = line } { print }' \
			"$RESULTS" >"$work/results"
		cp "$work/results" "$RESULTS"
		passed_alone+=("passed when run alone: $name (its first output: $dir/log)")
	done < <(awk '$2 > 0 { print $4 }' "$RESULTS")
}

# section NAME CMD...: make run-NAME, executed by CMD.
section() {
	local name=$1 start cpu rc=0
	shift
	start=$(now)
	spent cpu
	export PYPROF_SECTION=$name
	[ ! -e "$work/ended" ] || set -- env # what it would leave the processors to has ended
	# Not quoted, because SUBMAKE can contain -j as well.
	# shellcheck disable=SC2086
	"$@" $SUBMAKE "run-$name" || rc=$?
	[ $rc -eq 0 ] || record "$name/build" 0 1 0
	took - "$start" "$cpu" ""
}

# in_sequence SECTIONS CMD...: each as `section`.
in_sequence() {
	local name list=${1//,/ }
	shift
	for name in $list; do
		echo "== $name"
		section "$name" "$@"
	done
}

# busy_again PID: its descendants no longer get idle time only.
busy_again() {
	local pid
	for pid in $(ps -eo pid=,ppid= | awk -v root="$1" '
		{ parent[$1] = $2 }
		END { for (pid in parent) { p = pid; while (p > 1 && p != root) p = parent[p]; if (p == root) print pid } }'); do
		chrt -a -o -p 0 "$pid" 2>/dev/null || renice -n 0 -p "$pid" >/dev/null 2>&1 || :
	done
}

# group SECTIONS ASIDE: run a GROUP.
group() {
	local aside=$2 idle=(nice -n 19)

	! chrt -i 0 true 2>/dev/null || idle=(chrt -i 0)
	# Compilers and analysers: page faults take a fifth of the time of clang-tidy where traps are slow.
	idle=(env GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "${idle[@]}")
	if [ -n "$aside" ]; then
		set -m
		# Where others use the processors, it may get none until the end.
		TEST_TIMEOUT=$((4 * TEST_TIMEOUT)) in_sequence "$aside" "${idle[@]}" >"$work/aside" 2>&1 &
		beside=$!
		set +m
	fi
	# In a subshell: the CPU time of what runs aside is not its own.
	(in_sequence "$1" env)
	[ -n "$aside" ] || return 0
	: >"$work/ended"
	# Twice: there may be new ones, of parents that had their turn later.
	busy_again "$beside"
	busy_again "$beside"
	wait "$beside" || record "$aside/build" 0 1 0
	beside=
	rm "$work/ended"
	cat "$work/aside"
}

# Objects that an earlier run has compiled, in another clone as well, are taken from ccache.
use_ccache() {
	[ -d /usr/lib/ccache ] || return 0
	export PATH=/usr/lib/ccache:$PATH CCACHE_NOHASHDIR=1
}

sections() {
	local group
	use_ccache
	mkdir -p "$(dirname "$RESULTS")"
	: >"$RESULTS"
	: >"$RESULTS.why"
	: >"$RESULTS.times"
	rm -rf "$RESULTS.failed"
	[ -n "${PYPROF_PATIENCE:-}" ] || {
		PYPROF_PATIENCE=$("$top/tests/patience.py") || PYPROF_PATIENCE=1
		export PYPROF_PATIENCE
	}
	kernel_log >"$work/klog.before" 2>/dev/null || rm -f "$work/klog.before"
	for group; do
		group "${group%+*}" "$(sed -n 's/.*+//p' <<<"$group")"
	done
	run_again
	kernel_log_check "$work/klog.before"
	"$top/tests/stats.py" "$RESULTS" >"$RESULTS.table"
	"$top/tests/stats.py" --short "$RESULTS"
	cat "$RESULTS.why"
	[ ${#passed_alone[@]} -eq 0 ] || printf '%s\n' "${passed_alone[@]}"
	awk -v strict="$(strict && echo 1)" '
		{ p += $1; f += $2; s += $3
		  if ($2) print "FAILED " $4; if ($3) print "skipped " $4 }
		END { printf "%d passed, %d failed, %d skipped\n", p, f, s
		      exit (f > 0 || (strict && s > 0)) }' "$RESULTS"
}

case ${1:-} in
--stats)
	exec "$top/tests/stats.py" "${2:-${PYPROF_BUILD:-$top/build}/check/results}"
	;;
--sections)
	sections "${@:2}"
	exit
	;;
--command) command_ "${@:2}" ;;
--node) node_ "${@:2}" ;;
--fuzz) fuzz "${@:2}" ;;
--fuzz-replay) fuzz_replay "${@:2}" ;;
--programs) programs "${@:2}" ;;
--whole) whole "${@:2}" ;;
--jobs) criterion "$2" "${@:3}" ;;
*) criterion "" "$@" ;;
esac
# With a RESULTS file, the caller that adds it up decides.
[ "$RESULTS" != /dev/null ] || exit $failed
