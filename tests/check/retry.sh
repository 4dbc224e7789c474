#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh runs a failed program once more, alone, and says so: at most three of them, and a second failure is one.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/tests"

# program NAME FAILURES: a program like Criterion's that fails so many times, then passes.
program() {
	cat >"$dir/tests/test_$1" <<-END
		#!/bin/sh
		for arg; do case \$arg in --tap=*) tap=\${arg#--tap=} ;; esac; done
		echo x >>"$dir/runs.$1"
		if [ "\$(wc -l <"$dir/runs.$1")" -gt $2 ]; then word=ok; else word='not ok'; echo "[----] output of $1"; fi
		printf '1..1\n%s - suite::case (0.00s)\n' "\$word" >"\$tap"
	END
	chmod 755 "$dir/tests/test_$1"
}

# check STATUS LINE...: run all programs; the status and each line must be as expected.
check() {
	status=0 expected=$1
	shift
	env -u CI -u PYPROF_TEST_REQUIRE -u MAKEFLAGS RESULTS="$dir/results" SUBMAKE="sh $dir/make" PYPROF_PATIENCE=1 \
		tests/run.sh --sections fake >"$dir/out" 2>&1 || status=$?
	[ "$status" = "$expected" ] || { cat "$dir/out"; echo "status $status, not $expected"; exit 1; }
	for line; do
		grep -qxF "$line" "$dir/out" || { cat "$dir/out"; echo "there is no line '$line'"; exit 1; }
	done
	rm -rf "$dir"/runs.* "$dir"/tests/* "$dir"/results*
}

echo "exec tests/run.sh --programs 2 --jobs 1 fake $dir/tests/test_*" >"$dir/make"

program good 0
check 0 '  ok     fake/good: 1 passed, 0 failed, 0 skipped'

program good 0
program once 1
check 0 "passed when run alone: fake/once (its first output: $dir/results.failed/fake/once/log)" \
	'  FAIL   fake/once: 0 passed, 1 failed, 0 skipped' 'fake/once:' '[----] output of once'

program good 0
program twice 2
check 1 'FAILED fake/twice'

for name in a b c d; do program $name 1; done
check 1 'FAILED fake/a' 'FAILED fake/d'
