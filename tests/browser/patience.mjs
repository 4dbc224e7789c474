// SPDX-License-Identifier: BSD-2-Clause
// How long the tests wait: see tests/harness/patience.h. For what must happen, until the time of the program is over.

const ALONE_S = 300; // if run.sh did not start it

const now = () => Number(process.hrtime.bigint() / 1000000n); // of CLOCK_MONOTONIC, ms
const factor = Math.max(1, Number(process.env.PYPROF_PATIENCE) || 1);
const end = Number(process.env.PYPROF_TEST_UNTIL) * 1000 || now() + ALONE_S * 1000 * factor;

// Milliseconds until then, at least one
export function left() {
	return Math.max(1, Math.floor(end - now()));
}

export function over() {
	return now() >= end;
}

const STEP = 20;

// The time between two looks at a condition
export function step() {
	return new Promise((resolve) => setTimeout(resolve, STEP));
}
