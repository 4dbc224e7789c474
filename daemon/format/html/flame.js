// SPDX-License-Identifier: BSD-2-Clause
// The flame graph: callers above what they called, as wide as their cumulative share. d3-flame-graph
// lays it out and draws it. It is handed only what can be seen of the tree: frames wide enough for
// that, level by level up to a limit; zooming hands it more. So its cost depends on the window, not
// on the snapshot, and a recursion of any depth is drawn.

import flamegraph from 'd3-flame-graph';
import { select } from 'd3-selection';
import { threadKey } from './data.js';
import { Palette } from './palette.js';
import { perCallTexts } from './percall.js';
import { legend, partsOf, sharesOf } from './reasons.js';
import { Shades } from './shades.js';
import { count, element, percent, shortened } from './text.js';
import { matchTrees } from './trees.js';

const NARROWEST = 1.5; // pixels
const MOST_FRAMES = 2500;
const MOST_LEVELS = 250;
const ROW = 20;
const LONGEST_NAME = 200;

export class Flame {
	// parts: chart, path, details, note, legend, shades; onSelect(function id) when a function's frame is chosen.
	constructor(parts, report, onSelect) {
		this.parts = parts;
		this.report = report;
		this.onSelect = onSelect;
		this.focus = 0;
		this.current = 0;
		this.match = null;
		this.palette = new Palette();
		this.shades = new Shades(parts.shades);
		this.byReason = false;
		this.chart = flamegraph()
			.cellHeight(ROW)
			.transitionDuration(0)
			.inverted(true)
			.resetHeightOnZoom(true)
			.setLabelHandler((d) => this.describe(d.data.node))
			.setColorMapper((d) => this.colour(d.data.node));
		this.listen();
	}

	listen() {
		const { chart } = this.parts;

		// Before d3-flame-graph sees it: it would zoom in the frames at hand, without finer ones.
		chart.addEventListener(
			'click',
			(event) => {
				const node = this.nodeAt(event.target);

				event.stopPropagation();
				if (node !== null)
					this.open(node);
			},
			true,
		);
		chart.addEventListener('mouseover', (event) => {
			const node = this.nodeAt(event.target);

			if (node !== null)
				this.parts.details.textContent = this.describe(node);
		});
		chart.addEventListener('mouseleave', () => this.describeCurrent());
		chart.addEventListener('keydown', (event) => this.key(event));
		chart.addEventListener('focus', () => this.mark());
		new ResizeObserver(() => this.resize()).observe(chart);
	}

	nodeAt(target) {
		const data = target.closest?.('g.frame')?.__data__;

		return data ? data.data.node : null;
	}

	// A later report of the same profile; its tree follows. What is shown stays so, as far as it exists.
	setReport(report) {
		this.kept = this.tree && [this.focus, this.current].map((node) => this.keysOf(node));
		this.report = report;
	}

	// how: byReason: frames have the colours of the reasons for waiting, which the tree has then.
	// inverted: functions, and below each its callers. before: { tree, threads } of an earlier time, with
	// which frames are compared.
	setTree(tree, measure, how) {
		const [focus, current] = this.kept ?? (this.tree ? [this.focus, this.current] : []).map((i) => this.keysOf(i));
		const turned = this.how && this.how.inverted !== how.inverted;

		this.kept = null;
		this.tree = tree;
		this.measure = measure;
		this.how = how;
		this.byReason = how.byReason;
		this.then = how.before && {
			match: matchTrees(tree, this.report.threads, how.before.tree, how.before.threads),
			cum: how.before.tree[`cum_${measure.key}`],
		};
		this.parts.chart.parentElement.classList.toggle('by-reason', how.byReason);
		this.cum = tree[`cum_${measure.key}`];
		this.focus = turned || !focus ? 0 : this.find(focus);
		this.current = turned || !current ? 0 : this.find(current);
		this.render();
	}

	// What a path consists of in every report: functions by number, threads by name.
	keyOf(node) {
		const group = this.tree.group[node];

		return group >= 0 ? group : threadKey(this.report.threads[-1 - group]);
	}

	keysOf(node) {
		return this.pathOf(node)
			.slice(1)
			.map((i) => this.keyOf(i));
	}

	// The node that a path leads to, as far as it exists.
	find(path) {
		let node = 0;

		for (const key of path) {
			const child = this.children(node).find((i) => this.keyOf(i) === key);

			if (child === undefined)
				break;
			node = child;
		}
		return node;
	}

	children(node) {
		const { first, next } = this.tree.links;
		const ret = [];

		for (let i = first[node]; i >= 0; i = next[i])
			ret.push(i);
		return ret;
	}

	pathOf(node) {
		const path = [];

		for (let i = node; i >= 0; i = this.tree.parent[i])
			path.unshift(i);
		return path;
	}

	name(node) {
		const group = this.tree.group[node];

		if (node === 0)
			return 'all';
		if (group >= 0)
			return shortened(this.report.functions[group].label, LONGEST_NAME);
		const thread = this.report.threads[-1 - group];
		return `${shortened(thread.name || 'thread', LONGEST_NAME)} [${thread.pid}:${thread.tid}]`;
	}

	describe(node) {
		const own = this.tree[this.measure.key][node];
		const calls = this.report.has.calls ? ` · ${count(this.tree.calls[node])} calls here${this.perCall(node)}` : '';
		const group = this.tree.group[node];
		const where = group >= 0 ? ` · ${this.report.functions[group].where}` : '';
		const alone = this.how.inverted ? '' : ` · own ${this.measure.value(own)}`;

		return `${this.name(node)} · ${this.measure.value(this.cum[node])}, ${percent(
			this.cum[node],
			this.cum[0],
		)}${this.changed(node)}${alone}${this.reasons(node)}${calls}${shortened(where, 300)}`;
	}

	// Calls per call of its caller, whose frame is above it
	perCall(node) {
		const known = this.tree.perCall?.(node);

		return known ? `, ${perCallTexts(known).filter(Boolean).join(' ')}` : '';
	}

	// By how much its share differs from what it was before; undefined: there was nothing.
	change(node) {
		const { match, cum } = this.then;

		if (!cum[0] || !this.cum[0])
			return undefined;
		return this.cum[node] / this.cum[0] - (match[node] >= 0 ? cum[match[node]] / cum[0] : 0);
	}

	changed(node) {
		const change = this.then ? this.change(node) : undefined;

		return change === undefined ? '' : ` (${change < 0 ? '−' : '+'}${percent(Math.abs(change), 1)})`;
	}

	// Of a context's own time
	partsOf(node) {
		return partsOf((key) => this.tree[key]?.[node] ?? 0);
	}

	reasons(node) {
		const shares = this.byReason ? sharesOf(this.partsOf(node)) : '';

		return shares && `: ${shares}`;
	}

	// Reasons of what no frame below shows: own time, and callees too narrow or too deep.
	shade(node) {
		const below = this.frames.get(node).children.map((frame) => frame.node);
		const left = (key) => {
			const cum = this.tree[`cum_${key}`];

			return cum ? below.reduce((ns, i) => ns - cum[i], cum[node]) : 0;
		};

		return this.shades.of(partsOf(left), left('wall') / this.cum[node]);
	}

	colour(node) {
		if (this.byReason)
			return this.shade(node);
		if (this.then)
			return this.palette.ofChange(this.change(node));
		const group = this.tree.group[node];

		return this.palette.of(group >= 0 ? this.report.functions[group] : null);
	}

	// What can be seen below node, as d3-flame-graph wants it, largest first; breadth first, so
	// that what is over the limit is deepest.
	visible(node) {
		const narrowest = (this.cum[node] * NARROWEST) / this.width;
		const root = this.frame(node, null, 0);
		const queue = [root];

		this.frames = new Map([[node, root]]);
		for (let at = 0; at < queue.length && queue.length < MOST_FRAMES; at++) {
			const above = queue[at];
			const below = this.children(above.node)
				.filter((i) => this.cum[i] > 0 && this.cum[i] >= narrowest)
				.sort((a, b) => this.cum[b] - this.cum[a]);

			if (above.level + 1 >= MOST_LEVELS)
				break;
			for (const i of below) {
				const frame = this.frame(i, above, above.children.length);

				above.children.push(frame);
				this.frames.set(i, frame);
				queue.push(frame);
			}
		}
		return root;
	}

	frame(node, above, index) {
		return {
			node,
			above,
			index,
			name: this.name(node),
			value: this.cum[node],
			children: [],
			level: above ? above.level + 1 : 0,
		};
	}

	resize() {
		if (this.tree && Math.abs(this.parts.chart.clientWidth - this.width) > 1)
			this.render();
	}

	render() {
		const { chart } = this.parts;
		const root = (this.width = Math.max(chart.clientWidth, 200)) && this.visible(this.focus);

		this.chart.width(this.width);
		this.shades.clear();
		if (!this.selection) {
			this.selection = select(chart).datum(root);
			this.selection.call(this.chart);
		} else {
			this.chart.update(root);
		}
		if (!this.frames.has(this.current))
			this.current = this.focus;
		this.dress();
		this.showPath();
		this.showNote();
		this.showLegend();
		this.describeCurrent();
	}

	// What d3-flame-graph leaves to its user: roles, names, matches.
	dress() {
		const svg = this.parts.chart.querySelector('svg');

		const levels = [...this.frames.values()].reduce((n, f) => Math.max(n, f.level), 0) + 1;
		svg.setAttribute('height', levels * ROW);
		svg.setAttribute('viewBox', `0 0 ${this.width} ${levels * ROW}`);
		svg.setAttribute('role', 'presentation');
		for (const g of svg.querySelectorAll('g.frame')) {
			const { node, level } = g.__data__.data;

			g.id = `frame-${node}`;
			g.setAttribute('role', 'treeitem');
			g.setAttribute('aria-level', level + 1);
			g.setAttribute(
				'aria-label',
				`${this.name(node)}, ${percent(this.cum[node], this.cum[0])}${this.reasons(node)}`,
			);
			this.highlight(g, node);
		}
		this.mark();
	}

	highlight(g, node) {
		const group = this.tree.group[node];
		const matches = this.match !== null && group >= 0 && this.match[group];

		g.classList.toggle('match', Boolean(matches));
		g.classList.toggle('no-match', this.match !== null && !matches);
	}

	// match: true per function, or null for no search. Returns the share of what matches.
	search(match) {
		this.match = match;
		if (!this.tree)
			return null;
		for (const g of this.parts.chart.querySelectorAll('g.frame'))
			this.highlight(g, g.__data__.data.node);
		return match && { matched: this.matched(match), of: this.cum[0] };
	}

	// Contexts that match, what they called included, counted once.
	matched(match) {
		const { parent, group } = this.tree;
		const inside = new Uint8Array(parent.length);
		let sum = 0;

		for (let i = 1; i < parent.length; i++) {
			const hit = group[i] >= 0 && match[group[i]];

			if (hit && !inside[parent[i]])
				sum += this.cum[i];
			inside[i] = hit || inside[parent[i]];
		}
		return sum;
	}

	// Zoom, and show the function's figures.
	open(node) {
		const group = this.tree.group[node];

		this.zoom(node);
		if (group >= 0)
			this.onSelect(group);
	}

	zoom(node) {
		this.focus = this.current = node;
		this.render();
	}

	// The largest context of a function.
	zoomToFunction(id) {
		let largest = -1;

		for (let i = 1; i < this.tree.group.length; i++)
			if (this.tree.group[i] === id && (largest < 0 || this.cum[i] > this.cum[largest]))
				largest = i;
		if (largest >= 0)
			this.zoom(largest);
		return largest >= 0;
	}

	showPath() {
		const path = this.pathOf(this.focus);
		const shown = path.length > 8 ? [path[0], -1, ...path.slice(-6)] : path;
		const { chart } = this.parts;

		this.parts.path.replaceChildren(
			...shown.map((node) =>
				node < 0
					? element('li', {}, '…')
					: element(
							'li',
							{},
							element(
								'button',
								{
									type: 'button',
									'aria-current': node === this.focus && 'location',
									click: () => {
										this.zoom(node);
										chart.focus();
									},
								},
								shortened(this.name(node), 60),
							),
						),
			),
		);
	}

	showNote() {
		const all = this.tree.size[this.focus];
		const left = all - this.frames.size;
		const counted = this.report.threads.some((t) => t.counted)
			? ' Processes that were only counted have no contexts, and are not in it.'
			: '';

		this.parts.note.textContent =
			this.cum[this.focus] > 0
				? left > 0
					? `${count(this.frames.size)} of ${count(all)} contexts drawn; the others are too narrow or too deep to see: zoom in to see them.`
					: `${count(all)} contexts.`
				: 'Nothing was measured here of this.';
		this.parts.note.textContent += counted;
	}

	// Reasons of all own times below the focus, or what the colours of frames mean.
	showLegend() {
		const { legend: list } = this.parts;

		if (this.byReason)
			list.replaceChildren(
				...legend(partsOf((key) => this.tree[`cum_${key}`]?.[this.focus] ?? 0)),
				element('li', {}, element('span', { class: 'swatch callees', 'aria-hidden': 'true' }), 'callees below'),
			);
		else if (this.then)
			list.replaceChildren(...this.palette.changes());
		else
			list.replaceChildren(...this.palette.legend(this.drawn(), this.cum[this.focus]));
	}

	// Functions of the frames, with what no frame below shows.
	drawn() {
		return [...this.frames.values()].map((frame) => {
			const group = this.tree.group[frame.node];

			return {
				f: group >= 0 ? this.report.functions[group] : null,
				own: frame.children.reduce((n, below) => n - below.value, frame.value),
			};
		});
	}

	describeCurrent() {
		this.parts.details.textContent = this.describe(this.current);
	}

	mark() {
		const { chart } = this.parts;

		chart.querySelector('g.frame.current')?.classList.remove('current');
		const g = document.getElementById(`frame-${this.current}`);
		if (!g)
			return;
		g.classList.add('current');
		chart.setAttribute('aria-activedescendant', g.id);
	}

	// Where an arrow leads; undefined: nowhere.
	neighbour(key) {
		const frame = this.frames.get(this.current);

		switch (key) {
			case 'ArrowDown':
				return frame.children[0];
			case 'ArrowUp':
				return frame.above ?? undefined;
			case 'ArrowLeft':
				return frame.above?.children[frame.index - 1];
			case 'ArrowRight':
				return frame.above?.children[frame.index + 1];
			default:
				return undefined;
		}
	}

	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (event.key.startsWith('Arrow')) {
			const frame = this.neighbour(event.key);

			if (frame) {
				this.current = frame.node;
				this.mark();
				this.describeCurrent();
				document
					.getElementById(`frame-${this.current}`)
					?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
			}
		} else if (event.key === 'Enter' || event.key === ' ') {
			this.open(this.current);
		} else if (event.key === 'Escape' || event.key === 'Backspace') {
			if (this.focus === 0)
				return;
			this.zoom(Math.max(0, this.tree.parent[this.focus]));
		} else if (event.key === 'Home') {
			this.zoom(0);
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	}
}
