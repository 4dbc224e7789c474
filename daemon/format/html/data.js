// SPDX-License-Identifier: BSD-2-Clause
// What the report shows, from the data behind the page (format/html.c writes it): calling contexts
// by column. Function rows and edges follow from them by the rules of stats/view.c: cumulative
// time and primitive calls count a recursion's outermost activation only.

import { Evidence, perCall, sourceOf, windowsOf, WHOLES } from './percall.js';
import { REASONS } from './reasons.js';

// Strings of digits become numbers, rounded.
function numbers(column) {
	return new Float64Array(column);
}

function indices(column) {
	return new Int32Array(column);
}

// C functions have no file.
function place(file, line) {
	return line === 0 && file === '~' ? 'written in C' : `${file}:${line}`;
}

// The functions of all reports that share it: a function has the same number in each of them.
export class Functions {
	constructor() {
		this.groups = [];
		this.known = new Map();
	}
}

// Code objects with the same identity are one function in reports, whatever their number.
function readFunctions(json, { groups, known }) {
	const groupOf = new Int32Array(json.functions.length);

	json.functions.forEach(([name, qualname, file, line, pseudo], i) => {
		const key = `${name} ${qualname} ${file} ${line} ${pseudo}`;
		let id = known.get(key);

		if (id === undefined) {
			id = groups.length;
			known.set(key, id);
			groups.push({
				id,
				name: json.strings[name],
				qualname: qualname < 0 ? null : json.strings[qualname],
				file: json.strings[file],
				line,
				pseudo: Boolean(pseudo),
				gc: Boolean(pseudo) && json.strings[name].startsWith('<gc'),
				native: !pseudo && line === 0 && json.strings[file] === '~',
				label: json.strings[qualname] || json.strings[name] || '<unknown>',
				where: pseudo ? '' : place(json.strings[file], line),
			});
		}
		groupOf[i] = id;
	});
	return { groups, groupOf };
}

function readThreads(json) {
	return json.threads.map(([pid, tid, name, alive, start, end, cpu, wall, root, mode], id) => ({
		id,
		pid,
		tid,
		name,
		alive: Boolean(alive),
		start: Number(start),
		end: Number(end),
		cpu: Number(cpu),
		wall: Number(wall),
		root,
		counted: mode === 'count',
		source: sourceOf(json.provenance.targets, pid),
		calls: 0,
	}));
}

// The time that functions held the GIL while others waited for it, by process; -1: outside Python.
function readPairs(json, { groupOf }) {
	const pairs = new Map();

	for (const [pid, holder, waiter, ns] of json.gil_pairs) {
		const pair = { pid, holder: groupOf[holder] ?? -1, waiter: groupOf[waiter] ?? -1, ns: Number(ns) };
		const key = `${pid} ${pair.holder} ${pair.waiter}`;
		const known = pairs.get(key);

		if (known)
			known.ns += pair.ns;
		else
			pairs.set(key, pair);
	}
	return [...pairs.values()].sort((a, b) => b.ns - a.ns);
}

// What the targets' modes measure at all; what they do not is no figure, not even 0. stacks: calling
// contexts; of counted calls only the caller is known.
function readModes({ targets }) {
	const modes = targets.map((t) => t.mode);
	const any = (test) => !modes.length || modes.some(test);

	return {
		calls: any((m) => m !== 'sample'),
		cpu: any((m) => m !== 'count'),
		wall: !modes.length || targets.some((t) => t.mode === 'trace' || t.waits),
		stacks: any((m) => m !== 'count'),
	};
}

// Standard errors by function, null where they are not known. Code objects' errors know nothing of
// each other; what is unknown of one is unknown of all.
function readErrors(json, { groups, groupOf }) {
	if (!json.errors)
		return null;
	const combine = (column) => {
		const ret = new Array(groups.length).fill(0);

		column.forEach((error, i) => {
			const of = groupOf[i];
			ret[of] = error < 0 || ret[of] === null ? null : Math.hypot(ret[of], Number(error));
		});
		return ret;
	};

	return Object.fromEntries(Object.entries(json.errors).map(([k, column]) => [k, combine(column)]));
}

// By function: how many of its calls are resumptions of generators and coroutines.
function readResumed(json, { groups, groupOf }) {
	if (!json.resumed)
		return null;
	const ret = groups.map(() => 0);

	json.resumed.forEach((n, i) => (ret[groupOf[i]] += Number(n ?? 0)));
	return ret;
}

// Quantiles of how long calls took, by function and field: p50_cpu to max_wall, null where they are not
// known. Of a histogram, [longest, middle of a bucket, number in it, …], those of code objects add up.
function readDurations(json, { groups, groupOf }) {
	if (!json.durations)
		return null;
	const ret = groups.map(() => ({}));

	['cpu', 'wall'].forEach((clock, c) => {
		const sums = groups.map(() => ({ longest: 0, count: 0, buckets: new Map() }));

		json.durations.forEach((histograms, i) => {
			const [longest, ...pairs] = (histograms?.[c] ?? [0]).map(Number);
			const to = sums[groupOf[i]];

			to.longest = Math.max(to.longest, longest);
			for (let k = 0; k < pairs.length; k += 2) {
				to.buckets.set(pairs[k], (to.buckets.get(pairs[k]) ?? 0) + pairs[k + 1]);
				to.count += pairs[k + 1];
			}
		});
		sums.forEach(({ longest, count, buckets }, id) => {
			const sorted = [...buckets].sort(([a], [b]) => a - b);
			const quantile = (share) => {
				let seen = 0;
				const found = sorted.find(([, n]) => (seen += n) >= share * count);

				return Math.min(found?.[0] ?? 0, longest) || null;
			};

			ret[id][`p50_${clock}`] = quantile(0.5);
			ret[id][`p90_${clock}`] = quantile(0.9);
			ret[id][`p99_${clock}`] = quantile(0.99);
		});
	});
	return ret;
}

// Own time by source line, of each function: a list sorted by line, null where there is none. Samples of
// code objects know nothing of each other.
function readOwnLines(json, { groups, groupOf }) {
	if (!json.own_lines)
		return null;
	const ret = groups.map(() => null);

	json.own_lines.forEach((flat, i) => {
		const of = (ret[groupOf[i]] ??= flat && new Map());

		for (let k = 0; flat && k < flat.length; k += 4) {
			const [line, self, error, samples] = flat.slice(k, k + 4).map(Number);
			const to = of.get(line) ?? { line, self: 0, error: 0, samples: 0 };

			of.set(line, {
				line,
				self: to.self + self,
				error: Math.hypot(to.error, error),
				samples: to.samples + samples,
			});
		}
	});
	return ret.map((lines) => lines && [...lines.values()].sort((a, b) => a.line - b.line));
}

// Children as lists, in the snapshot's order.
export function link(parent) {
	const n = parent.length;
	const first = new Int32Array(n).fill(-1);
	const next = new Int32Array(n).fill(-1);

	for (let i = n - 1; i >= 0; i--) {
		if (parent[i] < 0)
			continue;
		next[i] = first[parent[i]];
		first[parent[i]] = i;
	}
	return { first, next };
}

// Depth first, by links: stacks can be deeper than JavaScript's own.
function walk(root, { first, next }, parent, enter, leave) {
	let node = root;

	for (;;) {
		enter(node);
		if (first[node] >= 0) {
			node = first[node];
			continue;
		}
		while (node !== root && next[node] < 0) {
			leave(node);
			node = parent[node];
		}
		leave(node);
		if (node === root)
			return;
		node = next[node];
	}
}

// Numbers keys in the order in which they come.
function numberer() {
	const known = new Map();
	const keys = [];

	return {
		keys,
		at(key) {
			let i = known.get(key);

			if (i === undefined) {
				known.set(key, (i = keys.length));
				keys.push(key);
			}
			return i;
		},
	};
}

// Per context: its thread, its edge, and whether it is the outermost of its function and edge.
function relate(report) {
	const { parent, func } = report.nodes;
	const n = parent.length;
	const links = link(parent);
	const edgeOf = new Int32Array(n).fill(-1);
	const outerFunc = new Uint8Array(n);
	const outerEdge = new Uint8Array(n);
	const threadOf = new Int32Array(n);
	const funcDepth = new Uint32Array(report.groupOf.length);
	const codeEdge = new Int32Array(n);
	const codeEdges = numberer();
	const edges = numberer();
	const edgeDepth = [];

	// Contexts that are none: where calls were only counted, a caller's stands for its calls elsewhere.
	function isCaller(node, thread) {
		return thread.counted && !report.nodes.calls[node];
	}

	function numberEdge(node) {
		const caller = func[parent[node]];
		const callee = func[node];
		const from = caller < 0 ? -1 : report.groupOf[caller];
		const to = report.groupOf[callee];

		codeEdge[node] = codeEdges.at((caller + 1) * (report.groupOf.length + 1) + callee);
		edgeOf[node] = edges.at((from + 1) * report.functions.length + to);
		edgeDepth[codeEdge[node]] ??= 0;
	}

	for (const thread of report.threads) {
		walk(
			thread.root,
			links,
			parent,
			(node) => {
				threadOf[node] = thread.id;
				if (func[node] < 0 || isCaller(node, thread))
					return;
				thread.calls += report.nodes.calls[node];
				numberEdge(node);
				outerFunc[node] = funcDepth[func[node]]++ === 0 || thread.counted;
				outerEdge[node] = edgeDepth[codeEdge[node]]++ === 0 || thread.counted;
			},
			(node) => {
				if (func[node] < 0 || isCaller(node, thread))
					return;
				funcDepth[func[node]]--;
				edgeDepth[codeEdge[node]]--;
			},
		);
	}
	return {
		edges: edges.keys.map((key) => [
			Math.floor(key / report.functions.length) - 1,
			key % report.functions.length,
		]),
		edgeOf,
		outerFunc,
		outerEdge,
		threadOf,
	};
}

// How figures of a key become one: sums, unless the column has another rule.
const sum = (a, b) => a + b;

export function mergeOf({ columns }, key) {
	return columns.some((c) => c.name === key && c.merge === 'max') ? Math.max : sum;
}

export function cumulative(self, parent, merge = sum) {
	const cum = new Float64Array(self);

	for (let i = cum.length - 1; i >= 0; i--)
		if (parent[i] >= 0)
			cum[parent[i]] = merge(cum[parent[i]], cum[i]);
	return cum;
}

// Own wall time apart from known reasons for waiting: on a CPU, and in the garbage collector.
function addRunning({ nodes, functions, groupOf, measured }) {
	const { func, cpu, wall } = nodes;

	nodes.on_cpu = new Float64Array(func.length);
	nodes.gc = new Float64Array(func.length);
	for (let i = 0; i < func.length; i++)
		if (func[i] >= 0 && functions[groupOf[func[i]]].gc)
			nodes.gc[i] = Math.max(0, wall[i] - REASONS.reduce((n, key) => n + (nodes[key]?.[i] ?? 0), 0));
		else
			nodes.on_cpu[i] = cpu[i];
	measured.push('on_cpu', 'gc');
}

// All that threads have of a column, outside Python as well.
function addToThreads(report, name) {
	const { threads, threadOf, nodes } = report;
	const merge = mergeOf(report, name);
	const all = new Float64Array(threads.length);

	for (let i = 0; i < threadOf.length; i++)
		all[threadOf[i]] = merge(all[threadOf[i]], nodes[name][i]);
	for (const thread of threads)
		thread[name] = all[thread.id];
}

// What is in the snapshot, without what follows from it.
function read(json, all) {
	const { groups, groupOf } = readFunctions(json, all);
	const columns = json.columns.map(([name, group, label, text, unit, merge]) => ({
		name, // the key of its figures
		group,
		label,
		text,
		unit,
		merge,
		tot: `tot_${name}`,
		cum: `cum_${name}`,
	}));
	const parent = indices(json.nodes.parent);
	const nodes = {
		parent,
		func: indices(json.nodes.func),
		calls: numbers(json.nodes.calls),
		inflight: numbers(json.nodes.inflight),
		cpu: numbers(json.nodes.cpu),
		wall: numbers(json.nodes.wall),
		min_cpu: numbers(json.nodes.min_cpu),
		max_cpu: numbers(json.nodes.max_cpu),
		min_wall: numbers(json.nodes.min_wall),
		max_wall: numbers(json.nodes.max_wall),
	};
	const report = {
		provenance: json.provenance,
		lines: json.lines,
		targets: json.targets.map(([pid, command, start, end, exact]) => ({
			pid,
			command,
			start: Number(start),
			end: Number(end),
			exact: Boolean(exact),
		})),
		threads: readThreads(json),
		functions: groups,
		groupOf,
		has: { ...readModes(json.provenance), waits: columns.some((c) => c.group === 'waits') },
		errors: readErrors(json, { groups, groupOf }),
		durations: readDurations(json, { groups, groupOf }),
		ownLines: readOwnLines(json, { groups, groupOf }),
		resumed: readResumed(json, { groups, groupOf }),
		pairs: readPairs(json, { groupOf }),
		columns,
		measured: [], // what contexts have a share of
		nodes,
	};

	for (const { name } of columns)
		nodes[name] = numbers(json.nodes[name]);
	for (const key of WHOLES)
		if (json.nodes[key])
			nodes[key] = numbers(json.nodes[key]);
	return report;
}

// What follows from the figures of its contexts.
export function derive(report) {
	const { nodes, groupOf, columns } = report;

	report.measured = ['cpu', 'wall', ...columns.map((c) => c.name)];
	for (const thread of report.threads)
		thread.calls = 0;
	if (report.has.waits)
		addRunning(report);
	for (const key of report.measured)
		nodes[`cum_${key}`] = cumulative(nodes[key], nodes.parent, mergeOf(report, key));
	Object.assign(report, relate(report));
	report.functionOf = nodes.func.map((f) => (f < 0 ? -1 : groupOf[f]));
	for (const { name } of columns)
		addToThreads(report, name);
	return report;
}

// A report of the data behind a page. Those of one profile, taken later, share their functions.
export function load(json, functions = new Functions()) {
	return derive(read(json, functions));
}

// A thread of one report in another one
export function threadKey({ pid, tid }) {
	return `${pid}:${tid}`;
}

// Figures by name: calls, and own and cumulative shares of all that was measured.
function sums(report, n) {
	const keys = ['ncalls', 'pcalls', ...report.measured.flatMap((k) => [`tot_${k}`, `cum_${k}`])];

	return Object.fromEntries(keys.map((key) => [key, new Float64Array(n)]));
}

// Adds what contexts have to where each of them belongs, if it does: with its callees' share only where
// it is outermost. Column by column, which is what 100,000 contexts need to be quick.
function addUp(to, self, all, { chosen, at, outermost }, merge = sum) {
	const [tot, cum] = to;

	for (let k = 0; k < chosen.length; k++) {
		const i = chosen[k];

		tot[at[i]] = merge(tot[at[i]], self[i]);
		if (outermost[i])
			cum[at[i]] = merge(cum[at[i]], all[i]);
	}
}

function addAll(report, to, which) {
	const { nodes } = report;

	addUp([to.ncalls, to.pcalls], nodes.calls, nodes.calls, which);
	for (const k of report.measured)
		addUp([to[`tot_${k}`], to[`cum_${k}`]], nodes[k], nodes[`cum_${k}`], which, mergeOf(report, k));
}

// Contexts of functions, of the selected threads.
function choose(report, selected) {
	const { edgeOf, threadOf } = report;
	const ret = new Int32Array(edgeOf.length);
	let n = 0;

	for (let i = 0; i < edgeOf.length; i++)
		if (edgeOf[i] >= 0 && selected[threadOf[i]])
			ret[n++] = i;
	return ret.subarray(0, n);
}

// The shortest is -1 while no call has returned, and 0 where probes cost more than it took.
function widen(min, max, at, nodeMin, nodeMax) {
	if (nodeMin < 0)
		return;
	if (min[at] < 0 || nodeMin < min[at])
		min[at] = nodeMin;
	if (nodeMax > max[at])
		max[at] = nodeMax;
}

// What tables show besides what was measured: waiting, and shares per call.
function rowOf(report, id, sum, inflight, min, max) {
	const ncalls = sum.ncalls[id];
	const pcalls = sum.pcalls[id];
	const tot_cpu = sum.tot_cpu[id];
	const cum_cpu = sum.cum_cpu[id];
	const tot_wall = sum.tot_wall[id];
	const cum_wall = sum.cum_wall[id];
	const perCall = (ns, calls) => (calls ? ns / calls : null);
	const extreme = (clock, of) => (min[clock][id] < 0 ? null : of[clock][id] || null);
	const row = {
		id,
		label: report.functions[id].label,
		where: report.functions[id].where,
		ncalls,
		pcalls,
		inflight: inflight[id],
		tot_cpu,
		cum_cpu,
		tot_wall,
		cum_wall,
		wait: Math.max(0, tot_wall - tot_cpu),
		cum_wait: Math.max(0, cum_wall - cum_cpu),
		percall_tot_cpu: perCall(tot_cpu, ncalls),
		percall_cum_cpu: perCall(cum_cpu, pcalls),
		percall_tot_wall: perCall(tot_wall, ncalls),
		percall_cum_wall: perCall(cum_wall, pcalls),
		min_cpu: extreme('cpu', min),
		max_cpu: extreme('cpu', max),
		min_wall: extreme('wall', min),
		max_wall: extreme('wall', max),
	};

	for (const key of report.measured) {
		row[`tot_${key}`] = sum[`tot_${key}`][id];
		row[`cum_${key}`] = sum[`cum_${key}`][id];
	}
	return row;
}

// Rows, edges and totals of the threads for which selected[id] is true.
export function aggregate(report, selected) {
	const { nodes, edgeOf, functionOf, edges } = report;
	const chosen = choose(report, selected);
	const n = report.functions.length;
	const byFunction = sums(report, n);
	const byEdge = sums(report, edges.length);
	const seenEdge = new Uint8Array(edges.length);
	const callers = new Evidence(report);
	const callees = new Evidence(report);
	const windows = windowsOf(
		report.provenance.targets,
		report.threads.filter((t) => selected[t.id]),
	);
	const inflight = new Float64Array(n);
	const min = { cpu: new Float64Array(n).fill(-1), wall: new Float64Array(n).fill(-1) };
	const max = { cpu: new Float64Array(n), wall: new Float64Array(n) };

	addAll(report, byFunction, { chosen, at: functionOf, outermost: report.outerFunc });
	addAll(report, byEdge, { chosen, at: edgeOf, outermost: report.outerEdge });
	for (const i of chosen) {
		const id = functionOf[i];

		const { source } = report.threads[report.threadOf[i]];

		seenEdge[edgeOf[i]] = 1;
		callers.add(id, i, source);
		callees.add(edgeOf[i], i, source);
		inflight[id] += nodes.inflight[i];
		widen(min.cpu, max.cpu, id, nodes.min_cpu[i], nodes.max_cpu[i]);
		widen(min.wall, max.wall, id, nodes.min_wall[i], nodes.max_wall[i]);
	}

	const everything = selected.every(Boolean);
	const rows = [];
	const total = Object.fromEntries(
		Object.entries(byFunction).map(([key, column]) => [
			key,
			column.reduce(mergeOf(report, key.replace(/^(tot|cum)_/, '')), 0),
		]),
	);
	for (let id = 0; id < n; id++) {
		const row = rowOf(report, id, byFunction, inflight, min, max);

		if (!row.ncalls && !row.inflight && !row.cum_cpu && !row.cum_wall)
			continue;
		// They are those of all threads together.
		Object.assign(row, everything && report.durations?.[id]);
		if (everything && report.resumed) {
			row.resumed = Math.min(report.resumed[id], row.ncalls);
			row.started = row.ncalls - row.resumed;
		}
		rows.push(row);
	}
	total.wait = Math.max(0, total.tot_wall - total.tot_cpu);
	return {
		rows,
		total,
		// They are those of all threads together.
		errors: everything ? report.errors : null,
		ownLines: everything ? report.ownLines : null,
		// Made when somebody looks at a function.
		edgesOf: (id, end) =>
			edges.flatMap(([caller, callee], i) =>
				seenEdge[i] && (end === 'caller' ? caller : callee) === id
					? [
							{
								caller,
								callee,
								perCall: caller < 0 ? null : perCall(callees, i, callers, caller, windows),
								...Object.fromEntries(Object.keys(byEdge).map((k) => [k, byEdge[k][i]])),
							},
						]
					: [],
			),
	};
}
