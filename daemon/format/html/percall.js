// SPDX-License-Identifier: BSD-2-Clause
// Calls per call of the caller, by the rules of stats/per_call.c: quotients of counts where every call was
// seen; where windows were, ratios of sums over whole calls, with their standard errors.

import { count, plusMinus } from './text.js';

export const WHOLES = ['whole_x', 'whole_y', 'whole_x2', 'whole_xy', 'whole_y2'];
const WINDOWS_LEAST = 1.5;
const ROUNDING = 1e-9; // as there
const LEAST = 0.001; // what is smaller is not distinguished

// How the calls of a process are known; null: not at all.
export function sourceOf(targets, pid) {
	const target = targets.find((t) => t.pid === pid);

	if (target?.mode === 'sample')
		return null;
	return target?.windows?.sampled ? 'windowed' : 'exact';
}

// The number of windows of these threads' processes.
export function windowsOf(targets, threads) {
	const pids = new Set(threads.map((t) => t.pid));

	return targets.reduce((n, t) => n + (t.windows?.sampled && pids.has(t.pid) ? t.windows.count : 0), 0);
}

// What contexts show, as callers or as callees, added up by what they belong to.
export class Evidence {
	constructor(report) {
		this.nodes = report.nodes;
		this.keys = report.nodes[WHOLES[0]] ? WHOLES : [];
		this.sums = { exact: [], windowed: [], ...Object.fromEntries(WHOLES.map((key) => [key, []])) };
	}

	add(to, i, source) {
		const add = (key, n) => (this.sums[key][to] = this.get(key, to) + n);

		if (source)
			add(source, this.nodes.calls[i]);
		if (source === 'windowed')
			for (const key of this.keys)
				add(key, this.nodes[key][i]);
	}

	get(key, of) {
		return this.sums[key][of] ?? 0;
	}
}

// Student's factor of a standard error for 95 %
function widening(n) {
	const z = 1.96;
	const v = n - 1;

	return 1 + (z ** 2 + 1) / (4 * v) + (5 * z ** 4 + 16 * z ** 2 + 3) / (96 * v * v);
}

function ratioOfSums(callee, caller, windows) {
	const n = Math.min(caller.y ** 2 / caller.y2, windows);
	const calls = callee.x / caller.y;
	const squares = callee.x2 - 2 * calls * callee.xy + calls ** 2 * caller.y2;

	if (!(callee.x > 0) || !(n >= WINDOWS_LEAST))
		return null;
	if (squares <= ROUNDING * calls ** 2 * caller.y2)
		return { calls, error: 0 };
	return { calls, error: (Math.sqrt((squares * n) / (n - 1)) / caller.y) * widening(n) };
}

// { calls, error }, null where it is not known. callees, callers: evidence, each with an index.
export function perCall(callees, callee, callers, caller, windows) {
	const of = (evidence, i) => Object.fromEntries(WHOLES.map((key) => [key.slice(6), evidence.get(key, i)]));
	const exact = callers.get('exact', caller);

	if (callers.get('windowed', caller) || callers.get('whole_y', caller))
		return exact ? null : ratioOfSums(of(callees, callee), of(callers, caller), windows);
	if (!exact || !callees.get('exact', callee))
		return null;
	return { calls: callees.get('exact', callee) / exact, error: 0 };
}

function figure(n, digits = 3) {
	return n < 10 ** digits - 0.5 ? String(Number(Math.max(n, LEAST).toPrecision(digits))) : count(n);
}

// "× 36.7 per call" and its error, "" where that is none.
export function perCallTexts({ calls, error }) {
	return [`× ${calls < LEAST ? '<' : ''}${figure(calls)} per call`, plusMinus(error, figure)];
}
