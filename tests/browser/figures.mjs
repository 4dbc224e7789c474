// SPDX-License-Identifier: BSD-2-Clause
// The figures that reports must show, computed from the JSON format. tests/unit/format compares the
// JSON format's figures with the snapshot's.

function flat(f) {
	return {
		ncalls: f.ncalls,
		pcalls: f.pcalls,
		tot_cpu: f.tottime.cpu,
		tot_wall: f.tottime.wall,
		cum_cpu: f.cumtime.cpu,
		cum_wall: f.cumtime.wall,
		...Object.fromEntries(
			Object.entries(f.counters ?? {}).flatMap(([name, self]) => [
				[`tot_counters_${name}`, self],
				[`cum_counters_${name}`, f.counters_cum[name]],
			]),
		),
	};
}

function add(map, key, figures, extra) {
	const known = map.get(key);

	if (!known)
		map.set(key, { ...extra, ...figures });
	else
		for (const [field, n] of Object.entries(figures))
			known[field] += n;
}

// The identity of a function, equal for its variants.
export function identity(f) {
	return JSON.stringify([f.file, f.line, f.name, f.qualname]);
}

export function functions(json) {
	const rows = new Map();
	const ids = [];

	for (const f of json.functions) {
		const key = identity(f);

		if (!rows.has(key))
			ids.push(key);
		add(rows, key, flat(f), { f, label: f.qualname || f.name || '<unknown>' });
	}
	// Ids in the page count identities in this order.
	return { rows, ids };
}

export function edges(json) {
	const ret = new Map();

	for (const e of json.edges) {
		const caller = e.caller === null ? null : identity(json.functions[e.caller]);
		const callee = identity(json.functions[e.callee]);

		add(ret, JSON.stringify([caller, callee]), flat(e), { caller, callee });
	}
	return [...ret.values()];
}

// Contexts; those with the same path in all threads are added up: path → calls, cumulative times.
export function contexts(json) {
	const cum = json.nodes.map((n) => ({ cpu: n.self.cpu, wall: n.self.wall, calls: n.calls }));
	const path = [];
	const ret = new Map();

	for (let i = json.nodes.length - 1; i >= 0; i--) {
		const { parent } = json.nodes[i];

		if (parent !== null)
			for (const key of ['cpu', 'wall', 'calls'])
				cum[parent][key] += cum[i][key];
	}
	json.nodes.forEach((n, i) => {
		path[i] = n.parent === null ? '' : `${path[n.parent]}/${identity(json.functions[n.func])}`;
		if (n.parent === null)
			return;
		const known = ret.get(path[i]) ?? { cpu: 0, wall: 0, calls: 0 };
		for (const key of ['cpu', 'wall', 'calls'])
			known[key] += cum[i][key];
		ret.set(path[i], known);
	});
	return ret;
}

// Rows of one thread, computed from its contexts only: calls and own times.
export function ownInThread(json, thread) {
	const ret = new Map();

	for (const n of json.nodes) {
		if (n.thread !== thread || n.func === null)
			continue;
		const key = identity(json.functions[n.func]);
		const row = ret.get(key) ?? { ncalls: 0, tot_cpu: 0, tot_wall: 0 };
		row.ncalls += n.calls;
		row.tot_cpu += n.self.cpu;
		row.tot_wall += n.self.wall;
		ret.set(key, row);
	}
	return ret;
}

// Standard errors by identity and figure, as in the page; null: unknown. The errors of code objects
// with one identity are added up as variances.
export function errors(json) {
	const ret = new Map();

	for (const f of json.functions) {
		const have = {
			ncalls: f.error.ncalls,
			tot_cpu: f.error.tottime.cpu,
			tot_wall: f.error.tottime.wall,
			cum_cpu: f.error.cumtime.cpu,
			cum_wall: f.error.cumtime.wall,
		};
		const before = ret.get(identity(f)) ?? {};

		for (const [figure, error] of Object.entries(have))
			have[figure] =
				error === null || before[figure] === null
					? null
					: Math.sqrt((before[figure] ?? 0) ** 2 + error ** 2);
		ret.set(identity(f), have);
	}
	return ret;
}

// Resources of edges, computed from contexts: own shares, and with callees, where contexts below
// another one of the same edge are left out.
export function edgeCounters(json, counter) {
	const { nodes } = json;
	const cum = nodes.map((n) => n.counters[counter]);
	const edge = (i) => `${nodes[nodes[i].parent].func} ${nodes[i].func}`;
	const ret = new Map();

	for (let i = nodes.length - 1; i > 0; i--)
		if (nodes[i].parent !== null)
			cum[nodes[i].parent] += cum[i];
	nodes.forEach((n, i) => {
		if (n.parent === null)
			return;
		let outermost = true;
		for (let p = n.parent; nodes[p].parent !== null; p = nodes[p].parent)
			outermost &&= edge(p) !== edge(i);
		const caller = nodes[n.parent].func;
		const key = JSON.stringify([
			caller === null ? null : identity(json.functions[caller]),
			identity(json.functions[n.func]),
		]);
		const known = ret.get(key) ?? { self: 0, cum: 0 };
		known.self += n.counters[counter];
		known.cum += outermost ? cum[i] : 0;
		ret.set(key, known);
	});
	return ret;
}

// The total of a thread's resource, including its use outside of Python.
export function threadCounter(json, thread, counter) {
	return json.nodes.reduce((sum, n) => sum + (n.thread === thread ? n.counters[counter] : 0), 0);
}
