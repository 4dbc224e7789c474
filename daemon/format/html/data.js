// SPDX-License-Identifier: BSD-2-Clause
// What the report shows, from the data behind the page (format/html.c writes it): calling contexts
// by column. Function rows and edges follow from them by the rules of stats/view.c: cumulative
// time and primitive calls count a recursion's outermost activation only.

// Strings of digits become numbers, rounded.
function numbers(column) {
	return new Float64Array(column);
}

function indices(column) {
	return new Int32Array(column);
}

// Code objects with the same identity are one function in reports, whatever their number.
function readFunctions(json) {
	const groups = [];
	const groupOf = new Int32Array(json.functions.length);
	const known = new Map();

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
				label: json.strings[qualname] || json.strings[name] || '<unknown>',
				where: pseudo ? '' : `${json.strings[file]}:${line}`,
			});
		}
		groupOf[i] = id;
	});
	return { groups, groupOf };
}

function readThreads(json) {
	return json.threads.map(([pid, tid, name, alive, start, end, cpu, wall, root], id) => ({
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
		calls: 0,
	}));
}

// Children as lists, in the snapshot's order.
function link(parent) {
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
	const edgeOf = new Int32Array(n);
	const outerFunc = new Uint8Array(n);
	const outerEdge = new Uint8Array(n);
	const threadOf = new Int32Array(n);
	const funcDepth = new Uint32Array(report.groupOf.length);
	const codeEdge = new Int32Array(n);
	const codeEdges = numberer();
	const edges = numberer();
	const edgeDepth = [];

	function meet(node) {
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
				if (func[node] < 0)
					return;
				thread.calls += report.nodes.calls[node];
				meet(node);
				outerFunc[node] = funcDepth[func[node]]++ === 0;
				outerEdge[node] = edgeDepth[codeEdge[node]]++ === 0;
			},
			(node) => {
				if (func[node] < 0)
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

function cumulative(self, parent) {
	const cum = new Float64Array(self);

	for (let i = cum.length - 1; i >= 0; i--)
		if (parent[i] >= 0)
			cum[parent[i]] += cum[i];
	return cum;
}

export function load(json) {
	const { groups, groupOf } = readFunctions(json);
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
		nodes,
	};

	nodes.cum_cpu = cumulative(nodes.cpu, parent);
	nodes.cum_wall = cumulative(nodes.wall, parent);
	Object.assign(report, relate(report));
	return report;
}

const FIGURES = ['ncalls', 'pcalls', 'tot_cpu', 'cum_cpu', 'tot_wall', 'cum_wall'];

function sums(n) {
	return Object.fromEntries(FIGURES.map((key) => [key, new Float64Array(n)]));
}

function add(to, at, nodes, i, outermost) {
	to.ncalls[at] += nodes.calls[i];
	to.tot_cpu[at] += nodes.cpu[i];
	to.tot_wall[at] += nodes.wall[i];
	if (!outermost)
		return;
	to.pcalls[at] += nodes.calls[i];
	to.cum_cpu[at] += nodes.cum_cpu[i];
	to.cum_wall[at] += nodes.cum_wall[i];
}

// The shortest is -1 while no call has returned.
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
	const extreme = (clock, of) => (min[clock][id] < 0 ? null : of[clock][id]);

	return {
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
}

// Rows, edges and totals of the threads for which selected[id] is true.
export function aggregate(report, selected) {
	const { nodes, groupOf, edgeOf, edges } = report;
	const n = report.functions.length;
	const byFunction = sums(n);
	const byEdge = sums(edges.length);
	const seenEdge = new Uint8Array(edges.length);
	const inflight = new Float64Array(n);
	const min = { cpu: new Float64Array(n).fill(-1), wall: new Float64Array(n).fill(-1) };
	const max = { cpu: new Float64Array(n), wall: new Float64Array(n) };

	for (let i = 0; i < nodes.parent.length; i++) {
		if (nodes.func[i] < 0 || !selected[report.threadOf[i]])
			continue;
		const id = groupOf[nodes.func[i]];

		add(byFunction, id, nodes, i, report.outerFunc[i]);
		add(byEdge, edgeOf[i], nodes, i, report.outerEdge[i]);
		seenEdge[edgeOf[i]] = 1;
		inflight[id] += nodes.inflight[i];
		widen(min.cpu, max.cpu, id, nodes.min_cpu[i], nodes.max_cpu[i]);
		widen(min.wall, max.wall, id, nodes.min_wall[i], nodes.max_wall[i]);
	}

	const rows = [];
	const total = { ncalls: 0, pcalls: 0, tot_cpu: 0, tot_wall: 0 };
	for (let id = 0; id < n; id++) {
		const row = rowOf(report, id, byFunction, inflight, min, max);

		if (!row.ncalls && !row.inflight && !row.cum_cpu && !row.cum_wall)
			continue;
		total.ncalls += row.ncalls;
		total.pcalls += row.pcalls;
		total.tot_cpu += row.tot_cpu;
		total.tot_wall += row.tot_wall;
		rows.push(row);
	}
	total.wait = Math.max(0, total.tot_wall - total.tot_cpu);
	return {
		rows,
		total,
		// Made when somebody looks at a function.
		edgesOf: (id, end) =>
			edges.flatMap(([caller, callee], i) =>
				seenEdge[i] && (end === 'caller' ? caller : callee) === id
					? [{ caller, callee, ...Object.fromEntries(FIGURES.map((k) => [k, byEdge[k][i]])) }]
					: [],
			),
	};
}

// The tree of a flame graph: contexts of the selected threads, those of the same path merged unless
// each thread is to have its own. Node 0 is all of it; group -1 - t is thread t.
export function mergeTree(report, selected, byThread) {
	const { nodes, groupOf } = report;
	const tree = { parent: [-1], group: [NaN], cpu: [0], wall: [0], calls: [0] };
	const at = new Int32Array(nodes.parent.length);
	const known = new Map();

	function child(parent, group) {
		const key = parent * (report.functions.length + report.threads.length + 1) + group +
			report.threads.length;
		let i = known.get(key);

		if (i === undefined) {
			i = tree.parent.length;
			known.set(key, i);
			tree.parent.push(parent);
			tree.group.push(group);
			tree.cpu.push(0);
			tree.wall.push(0);
			tree.calls.push(0);
		}
		return i;
	}

	for (let i = 0; i < at.length; i++) {
		const thread = report.threadOf[i];

		if (!selected[thread])
			continue;
		if (nodes.func[i] < 0) {
			at[i] = byThread ? child(0, -1 - thread) : 0;
			continue;
		}
		const to = (at[i] = child(at[nodes.parent[i]], groupOf[nodes.func[i]]));
		tree.cpu[to] += nodes.cpu[i];
		tree.wall[to] += nodes.wall[i];
		tree.calls[to] += nodes.calls[i];
	}
	tree.size = new Int32Array(tree.parent.length).fill(1);
	for (let i = tree.parent.length - 1; i > 0; i--)
		tree.size[tree.parent[i]] += tree.size[i];
	for (const key of ['cpu', 'wall', 'calls'])
		tree[`cum_${key}`] = cumulative(tree[key], tree.parent);
	tree.links = link(new Int32Array(tree.parent));
	return tree;
}
