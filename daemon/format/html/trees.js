// SPDX-License-Identifier: BSD-2-Clause
// The trees that flame graphs show: contexts of the chosen threads, merged by path.

import { cumulative, link, mergeOf, threadKey } from './data.js';
import { Evidence, perCall, windowsOf } from './percall.js';

// A tree of a flame graph that is being built: node 0 is all of it, group -1 - t is thread t.
class Tree {
	constructor(report, figures) {
		this.width = report.functions.length + report.threads.length + 1;
		this.threads = report.threads.length;
		this.figures = figures;
		this.merges = Object.fromEntries(figures.map((key) => [key, mergeOf(report, key)]));
		this.known = new Map();
		this.tree = { parent: [-1], group: [NaN] };
		for (const key of figures)
			this.tree[key] = [0];
	}

	child(parent, group) {
		const { tree } = this;
		const key = parent * this.width + group + this.threads;
		let i = this.known.get(key);

		if (i === undefined) {
			i = tree.parent.length;
			this.known.set(key, i);
			tree.parent.push(parent);
			tree.group.push(group);
			for (const figure of this.figures)
				tree[figure].push(0);
		}
		return i;
	}

	add(to, nodes, i) {
		for (const key of this.figures)
			this.tree[key][to] = this.merges[key](this.tree[key][to], nodes[key][i]);
	}

	done() {
		const { tree } = this;

		tree.size = new Int32Array(tree.parent.length).fill(1);
		for (let i = tree.parent.length - 1; i > 0; i--)
			tree.size[tree.parent[i]] += tree.size[i];
		for (const key of this.figures)
			tree[`cum_${key}`] = cumulative(tree[key], tree.parent, this.merges[key]);
		tree.links = link(new Int32Array(tree.parent));
		return tree;
	}
}

// Contexts of the selected threads, those of the same path merged unless each thread is to have its
// own, with calls, one of what was measured, and more of that. Where calls were only counted there
// are no contexts.
export function mergeTree(report, selected, byThread, measure, more = []) {
	const { nodes, groupOf } = report;
	const tree = new Tree(report, [...new Set([measure, 'calls', ...more])]);
	const at = new Int32Array(nodes.parent.length);
	const evidence = new Evidence(report);
	const windows = windowsOf(
		report.provenance.targets,
		report.threads.filter((t) => selected[t.id]),
	);

	for (let i = 0; i < at.length; i++) {
		const thread = report.threadOf[i];

		if (!selected[thread] || report.threads[thread].counted)
			continue;
		if (nodes.func[i] < 0) {
			at[i] = byThread ? tree.child(0, -1 - thread) : 0;
			continue;
		}
		at[i] = tree.child(at[nodes.parent[i]], groupOf[nodes.func[i]]);
		tree.add(at[i], nodes, i);
		evidence.add(at[i], i, report.threads[thread].source);
	}
	const ret = tree.done();

	// Calls per call of the caller
	ret.perCall = (node) => perCall(evidence, node, evidence, ret.parent[node], windows);
	return ret;
}

const DEEPEST = 200; // callers of an inverted tree, so that a deep recursion does not make it too large

// The same upside down: below all are the functions with their own shares, and below each its callers.
export function invertTree(report, selected, byThread, measure, more = []) {
	const { nodes, groupOf } = report;
	const tree = new Tree(report, [...new Set([measure, 'calls', ...more])]);

	for (let i = 0; i < nodes.parent.length; i++) {
		const thread = report.threadOf[i];

		if (nodes.func[i] < 0 || !selected[thread] || report.threads[thread].counted)
			continue;
		if (!nodes[measure][i] && !nodes.calls[i])
			continue;
		let to = byThread ? tree.child(0, -1 - thread) : 0;

		for (let k = i, n = 0; k >= 0 && nodes.func[k] >= 0 && n < DEEPEST; k = nodes.parent[k], n++)
			to = tree.child(to, groupOf[nodes.func[k]]);
		tree.add(to, nodes, i);
	}
	return tree.done();
}

// By node of `tree`: the node of `before` at the same path; -1: none. Threads match by their key.
export function matchTrees(tree, threads, before, threadsBefore) {
	const keyOf = (group, list) => (group >= 0 ? group : threadKey(list[-1 - group]));
	const below = new Map();
	const ret = new Int32Array(tree.parent.length).fill(-1);

	ret[0] = 0;
	for (let i = 1; i < before.parent.length; i++)
		below.set(`${before.parent[i]} ${keyOf(before.group[i], threadsBefore)}`, i);
	for (let i = 1; i < ret.length; i++)
		if (ret[tree.parent[i]] >= 0)
			ret[i] = below.get(`${ret[tree.parent[i]]} ${keyOf(tree.group[i], threads)}`) ?? -1;
	return ret;
}
