// SPDX-License-Identifier: BSD-2-Clause
// What happened between two moments: the difference of two reports of one profile.

import { derive, threadKey } from './data.js';
import { WHOLES } from './percall.js';

// By context of `report`: the context of `before` with the same thread and path; -1: none.
function matching(report, before) {
	const { nodes, functions, groupOf } = report;
	const width = functions.length + 1;
	const roots = new Map(before.threads.map((t) => [threadKey(t), t.root]));
	const below = new Map();
	const ret = new Int32Array(nodes.parent.length).fill(-1);

	before.nodes.parent.forEach((parent, i) => {
		const key = parent * width + before.groupOf[before.nodes.func[i]];

		if (parent >= 0 && !below.has(key))
			below.set(key, i);
	});
	for (const thread of report.threads)
		ret[thread.root] = roots.get(threadKey(thread)) ?? -1;
	nodes.parent.forEach((parent, i) => {
		if (parent >= 0 && ret[parent] >= 0)
			ret[i] = below.get(ret[parent] * width + groupOf[nodes.func[i]]) ?? -1;
	});
	return ret;
}

// Takes from each of `column` what its match had before. Code objects with the same identity match the
// same context, whose figure is taken once.
function subtracted(column, before, match) {
	const left = new Float64Array(before);
	const ret = new Float64Array(column);

	for (let i = 0; i < ret.length; i++) {
		if (match[i] < 0)
			continue;
		const taken = Math.min(ret[i], left[match[i]]);

		ret[i] -= taken;
		left[match[i]] -= taken;
	}
	return ret;
}

function threadsSince(report, before) {
	const known = new Map(before.threads.map((t) => [threadKey(t), t]));

	return report.threads.map((t) => {
		const then = known.get(threadKey(t));

		return {
			...t,
			cpu: Math.max(0, t.cpu - (then?.cpu ?? 0)),
			wall: Math.max(0, t.wall - (then?.wall ?? 0)),
		};
	});
}

function pairsSince(report, before) {
	const key = (p) => `${p.pid} ${p.holder} ${p.waiter}`;
	const known = new Map(before.pairs.map((p) => [key(p), p.ns]));

	return report.pairs
		.map((p) => ({ ...p, ns: p.ns - (known.get(key(p)) ?? 0) }))
		.filter((p) => p.ns > 0)
		.sort((a, b) => b.ns - a.ns);
}

function provenanceSince({ provenance }, before) {
	const known = new Map(before.provenance.targets.map((t) => [t.pid, t]));
	const less = (n, old) => Math.max(0, n - (old ?? 0));

	return {
		...provenance,
		targets: provenance.targets.map((t) => {
			const old = known.get(t.pid);
			const { overhead_ns, own_cpu_ns } = t.overhead;

			return {
				...t,
				traced_ns: less(t.traced_ns, old?.traced_ns),
				windows: t.windows && { ...t.windows, count: less(t.windows.count, old?.windows?.count) },
				overhead: {
					...t.overhead,
					overhead_ns: less(overhead_ns, old?.overhead.overhead_ns),
					own_cpu_ns: less(own_cpu_ns, old?.overhead.own_cpu_ns),
				},
			};
		}),
	};
}

// What happened between two reports that share their functions. Errors, durations, lines, and the
// shortest and longest calls are known of all time only.
export function since(report, before) {
	const match = matching(report, before);
	const none = new Float64Array(report.nodes.parent.length);
	const nodes = {
		...report.nodes,
		min_cpu: none.map(() => -1),
		max_cpu: none,
		min_wall: none.map(() => -1),
		max_wall: none,
	};
	const sums = ['calls', 'cpu', 'wall', ...WHOLES, ...report.columns.filter((c) => c.merge === 'sum').map((c) => c.name)];

	for (const key of sums)
		if (report.nodes[key] && before.nodes[key])
			nodes[key] = subtracted(report.nodes[key], before.nodes[key], match);
	return derive({
		...report,
		nodes,
		provenance: provenanceSince(report, before),
		threads: threadsSince(report, before),
		pairs: pairsSince(report, before),
		resumed: report.resumed && report.resumed.map((n, id) => Math.max(0, n - (before.resumed?.[id] ?? 0))),
		errors: null,
		durations: null,
		ownLines: null,
		interval: true,
	});
}
