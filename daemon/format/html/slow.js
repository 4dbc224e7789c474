// SPDX-License-Identifier: BSD-2-Clause
// Slow calls, from the JSON of /v1/slow/ID: a list, and of the chosen one a flame graph in the order of
// time, and the functions in which its time went.

import { bar, partsOf } from './reasons.js';
import { steady } from './steady.js';
import { count, element, nanoseconds, percent, shortened, tail, time } from './text.js';
import { TimeOrder } from './timeorder.js';

const ROWS = 15; // functions of a call
const KINDS = ['disk', 'socket', 'poll', 'pipe', 'device'];

// Figures of nodes by the keys of reasons.js
function figures(nodes) {
	const sum = (of) => nodes.reduce((n, node) => n + (of(node) ?? 0), 0);
	const waits = (key) => sum((node) => node.waits?.[key]);
	const ret = { wall: sum((n) => n.wall_ns), on_cpu: sum((n) => n.cpu_ns) };

	for (const key of ['gil', 'lock', 'runnable', 'sleep', 'fault', 'process', 'other'])
		ret[`waits_${key}`] = waits(key);
	for (const key of KINDS)
		ret[`waits_io_${key}`] = waits(key);
	ret.waits_io = KINDS.reduce((n, key) => n + ret[`waits_io_${key}`], 0);
	return ret;
}

function reasons(all) {
	return partsOf((key) => all[key] ?? 0);
}

export class SlowCalls {
	// parts: list, call, title, chart, details, note, legend, functions
	constructor(parts) {
		this.parts = parts;
		this.order = new TimeOrder(parts);
		this.chosen = null;
		this.result = { calls: [], functions: [] };
	}

	set(result) {
		this.result = result;
		steady(this.parts.list, () => this.drawList());
		const call = result.calls.find((c) => this.keyOf(c) === this.chosen) ?? result.calls[0];

		if (call)
			this.choose(call);
		else
			this.clear();
	}

	clear() {
		this.chosen = this.shown = null;
		this.parts.call.hidden = true;
		this.order.clear();
	}

	keyOf({ pid, tid, start_unix_ns }) {
		return `${pid} ${tid} ${start_unix_ns}`;
	}

	nameOf(index) {
		return shortened(this.result.functions[index]?.name ?? '<unknown>', 120);
	}

	whereOf(index) {
		const f = this.result.functions[index];

		return f ? shortened(`${f.file}:${f.line}`, 200) : '';
	}

	drawList() {
		const { calls } = this.result;
		const longest = calls.reduce((n, c) => Math.max(n, c.wall_ns), 0);
		const heads = ['call', 'took', 'cpu', 'thread', 'at', 'why'];

		this.parts.list.replaceChildren(
			calls.length
				? element(
						'table',
						{ 'aria-label': 'slow calls' },
						element('thead', {}, element('tr', {}, ...heads.map((h) => element('th', { scope: 'col' }, h)))),
						element('tbody', {}, ...calls.map((c) => this.row(c, longest))),
					)
				: element('p', { class: 'hint' }, 'No such call yet.'),
		);
	}

	row(c, longest) {
		const root = c.nodes[0]?.function;
		const at = new Date(Number(c.start_unix_ns) / 1e6);
		const row = element(
			'tr',
			{},
			element(
				'td',
				{},
				element(
					'button',
					{ type: 'button', class: 'link', title: this.whereOf(root), click: () => this.choose(c) },
					element('bdi', { class: 'name' }, this.nameOf(root)),
				),
			),
			element('td', { title: nanoseconds(c.wall_ns) }, time(c.wall_ns), c.running ? element('small', {}, ' so far') : ''),
			element('td', { title: nanoseconds(c.cpu_ns) }, time(c.cpu_ns)),
			element('td', {}, element('bdi', {}, shortened(c.thread || 'thread', 40)), element('small', {}, ` ${c.pid}:${c.tid}`)),
			element('td', { title: at.toISOString() }, at.toLocaleTimeString('en-GB')),
			element('td', {}, bar(reasons(figures(c.nodes)), longest)),
		);

		row.dataset.key = this.keyOf(c);
		row.classList.toggle('selected', row.dataset.key === this.chosen);
		return row;
	}

	choose(c) {
		const key = this.keyOf(c);
		const same = key === this.shown && !c.running;

		this.chosen = key;
		for (const row of this.parts.list.querySelectorAll('tr[data-key]'))
			row.classList.toggle('selected', row.dataset.key === key);
		if (same)
			return;
		this.shown = key;
		this.parts.call.hidden = false;
		this.parts.title.textContent = `${this.nameOf(c.nodes[0]?.function)}, ${time(c.wall_ns)}${this.left(c)}`;
		this.order.set(c, this.result.functions);
		this.drawFunctions(c);
	}

	// What its frames do not show.
	left(c) {
		return [
			c.running && ' so far',
			c.suspended_ns > 0 && `, of which suspended ${time(c.suspended_ns)}`,
			c.gap && ', some events were lost',
			c.truncated > 0 && `, ${count(c.truncated)} calls are booked to their callers`,
		]
			.filter(Boolean)
			.join('');
	}

	drawFunctions(c) {
		const byFunction = new Map();

		for (const node of c.nodes)
			byFunction.set(node.function, [...(byFunction.get(node.function) ?? []), node]);
		const rows = [...byFunction]
			.map(([f, nodes]) => ({ f, calls: nodes.reduce((n, node) => n + node.calls, 0), all: figures(nodes) }))
			.sort((a, b) => b.all.wall - a.all.wall);
		const longest = rows[0]?.all.wall ?? 0;
		const line = ({ f, calls, all }) =>
			element(
				'tr',
				{},
				element('td', {}, element('bdi', { class: 'name' }, this.nameOf(f)), ' ', element('bdi', { class: 'where', title: this.whereOf(f) }, tail(this.whereOf(f)))),
				element('td', {}, count(calls)),
				element('td', { title: nanoseconds(all.wall) }, time(all.wall)),
				element('td', {}, percent(all.wall, c.wall_ns)),
				element('td', {}, bar(reasons(all), longest)),
			);

		this.parts.functions.replaceChildren(
			element(
				'table',
				{ 'aria-label': 'functions of the call' },
				element('thead', {}, element('tr', {}, ...['function', 'calls', 'own time', 'own %', 'why'].map((h) => element('th', { scope: 'col' }, h)))),
				element('tbody', {}, ...rows.slice(0, ROWS).map(line)),
			),
			rows.length > ROWS ? element('p', { class: 'hint' }, `and ${rows.length - ROWS} more functions`) : '',
		);
	}
}

export function slowParts() {
	const $ = (id) => document.getElementById(id);

	return {
		list: $('slow-list'),
		call: $('slow-call'),
		title: $('slow-title'),
		chart: $('slow-chart'),
		details: $('slow-frame'),
		note: $('slow-note'),
		legend: $('slow-legend'),
		functions: $('slow-functions'),
	};
}

// What a recording kept, and what it could not follow.
export function summary(r) {
	const over = r.over_ns ? `at least ${time(r.over_ns)}` : `the ${count(r.n)} slowest`;
	const missed = [
		['unknown_start', 'had begun before'],
		['refused', 'were too many at a time'],
		['interrupted', 'did not end'],
		['unsearched', 'functions were not searched'],
	]
		.filter(([key]) => r[key])
		.map(([key, text]) => `${count(r[key])} ${text}`);

	return [
		`${r.match ? `calls of ${visibleMatch(r.match)}` : 'calls of own code'}, ${over}, by ${r.clock} time`,
		`${count(r.seen)} calls in ${time(r.elapsed_ns)}${r.over_ns ? `, ${count(r.over)} of them slow` : ''}`,
		...(missed.length ? [`not timed: ${missed.join(', ')}`] : []),
	].join(' · ');
}

function visibleMatch(text) {
	return `‘${shortened(text, 100)}’`;
}
