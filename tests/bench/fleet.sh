#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# One daemon and many Python processes: how long attaching takes; then its CPU time, memory and descriptors, and what
# was lost, every ten seconds.
#
#	tests/bench/fleet.sh IDLE BUSY SECONDS [OPTION]...
#
# Options are pyprofd's, such as --max-overhead 2. The processes sleep, or use one or two per cent of a CPU.
set -eu
idle=$1 busy=$2 seconds=$3
shift 3
: "${PYPROF_BUILD:=build}" "${PYTHON:=python3}"
dir=$(mktemp -d)
pids=
daemon=
# shellcheck disable=SC2086,SC2064
trap 'kill $daemon $pids 2>/dev/null || :; wait; rm -rf "$dir"' EXIT

cat >"$dir/fleet_load.py" <<'EOF'
import sys
import time


def square(n):
    return sum(i * i for i in range(n))


def turn(n):
    return square(n) + len(str(n))


while True:
    if sys.argv[1] == "busy":
        turn(5000)
    time.sleep(0.05 if sys.argv[1] == "busy" else 1)
EOF

start() {
	for _ in $(seq "$2"); do
		"$PYTHON" "$dir/fleet_load.py" "$1" &
		pids="$pids $!"
	done
}

start idle "$idle"
start busy "$busy"
sleep 3
"$PYPROF_BUILD/pyprofd" --continuous --match fleet_load --socket "$dir/s" "$@" &
daemon=$!

# Until all are attached: the time, and the CPU time with helper processes
clock=$(getconf CLK_TCK)
cpu_of() { # fields of /proc/PID/stat, added up: 14 15 its own, 16 17 its children's
	awk -v fields="$1" '{ n = split(fields, f, " "); for (i = 1; i <= n; i++) sum += $f[i] } END { print sum }' "/proc/$daemon/stat"
}
begin=$(date +%s)
while :; do
	sleep 1
	now=$(date +%s)
	"$PYPROF_BUILD/pyprofctl" --socket "$dir/s" status --json 2>/dev/null | "$PYTHON" -c '
import json, sys
p = json.load(sys.stdin)["continuous"]["processes"]
sys.exit(p["sampled"] + p["refused"] < int(sys.argv[1]))
' $((idle + busy)) 2>/dev/null && break
	[ $((now - begin)) -lt 600 ] || break
done
own=$(cpu_of "14 15") all=$(cpu_of "14 15 16 17")
awk -v s=$((now - begin)) -v own="$own" -v all="$all" -v hz="$clock" -v n=$((idle + busy)) 'BEGIN {
	printf "%d processes: attached after %d s, %.1f s of CPU time in the daemon, %.1f s with its helpers\n", n, s, own / hz, all / hz }'

echo "seconds,processes,waiting,intervals,cpu_percent_of_a_core,with_helpers,rss_kib,rate_hz,descriptors,lost,windows,overhead_percent_mean,overhead_percent_max"
before=$own before_all=$all
for t in $(seq 10 10 "$seconds"); do
	sleep 10
	now=$(cpu_of "14 15") all=$(cpu_of "14 15 16 17")
	rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$daemon/status")
	fds=$(find "/proc/$daemon/fd" -mindepth 1 2>/dev/null | wc -l)
	"$PYPROF_BUILD/pyprofctl" --socket "$dir/s" status --json | "$PYTHON" -c '
import json, sys
status = json.load(sys.stdin)
c = status["continuous"]
p = c["processes"]
targets = status["targets"]
overhead = [100 * t["overhead"] for t in targets if t["state"] == "tracing"] or [0]
windows = sum(t.get("windows", {}).get("count", 0) for t in targets)
t, cpu, all_, rss, hz, fds = sys.argv[1:]
print(t, p["sampled"], p["waiting"], c["intervals"], int(cpu) * 10 / int(hz), int(all_) * 10 / int(hz), rss,
      c["rate_hz"], fds, sum(t["lost"] for t in targets), windows,
      round(sum(overhead) / len(overhead), 2), round(max(overhead), 2), sep=",")
' "$t" $((now - before)) $((all - before_all)) "$rss" "$clock" "$fds"
	before=$now before_all=$all
done
