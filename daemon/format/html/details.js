// SPDX-License-Identifier: BSD-2-Clause
// One function: its figures, who called it, what it called. Callers and callees lead on to theirs.

import { count, element, nanoseconds, percent, shortened, time, visible } from './text.js';

const FIGURES = [
	['tottime', 'in the function itself', 'tot_cpu', 'tot_wall'],
	['cumtime', 'including what it called; recursion counted once', 'cum_cpu', 'cum_wall'],
	['tottime per call', 'per call', 'percall_tot_cpu', 'percall_tot_wall'],
	['cumtime per call', 'per primitive call', 'percall_cum_cpu', 'percall_cum_wall'],
	['shortest call', 'what it called included', 'min_cpu', 'min_wall'],
	['longest call', 'what it called included', 'max_cpu', 'max_wall'],
];
const AT_FIRST = 50; // callers or callees listed before one asks for all

export class Details {
	// onSelect(function id), onFlame(function id)
	constructor(box, report, onSelect, onFlame) {
		this.box = box;
		this.report = report;
		this.onSelect = onSelect;
		this.onFlame = onFlame;
		this.id = -1;
	}

	set({ rows, edgesOf }, clock) {
		this.rows = new Map(rows.map((r) => [r.id, r]));
		this.edgesOf = edgesOf;
		this.clock = clock;
		this.show(this.id);
	}

	show(id) {
		const f = this.report.functions[id];

		this.id = id;
		if (!f) {
			this.box.replaceChildren(
				element('p', { class: 'hint' }, 'Choose a function to see who called it and what it called.'),
			);
			return;
		}
		const row = this.rows.get(id);
		this.box.replaceChildren(
			this.heading(f, row),
			row ? this.figures(row) : element('p', {}, 'Not called in the chosen threads.'),
			this.list('callers', 'called by', this.edgesOf(id, 'callee'), 'caller'),
			this.list('callees', 'calls', this.edgesOf(id, 'caller'), 'callee'),
		);
	}

	heading(f, row) {
		const plain = f.qualname !== null && f.qualname !== f.name ? ` (${visible(f.name)})` : '';

		return element(
			'header',
			{},
			element('h3', {}, element('bdi', {}, visible(f.label))),
			element('p', { class: 'where' }, element('bdi', {}, visible(f.where)), plain),
			row
				? element(
						'button',
						{ type: 'button', click: () => this.onFlame(f.id) },
						'Show in the flame graph',
					)
				: '',
		);
	}

	figures(row) {
		const calls =
			row.ncalls === row.pcalls ? count(row.ncalls) : `${count(row.ncalls)}/${count(row.pcalls)}`;
		const cell = (ns) =>
			ns === null
				? element('td', { class: 'none' }, '–')
				: element('td', { title: nanoseconds(ns) }, time(ns));
		const line = ([title, help, cpu, wall]) =>
			element(
				'tr',
				{ title: help },
				element('th', { scope: 'row' }, title),
				cell(row[cpu]),
				cell(row[wall]),
			);

		return element(
			'table',
			{ class: 'figures', 'aria-label': 'figures' },
			element(
				'thead',
				{},
				element(
					'tr',
					{},
					element('th', { scope: 'col', title: 'calls, and primitive calls where they differ' }, row.ncalls === 1 ? '1 call' : `${calls} calls`),
					element('th', { scope: 'col' }, 'cpu'),
					element('th', { scope: 'col' }, 'wall'),
				),
			),
			element(
				'tbody',
				{},
				...FIGURES.map(line),
				element(
					'tr',
					{ title: 'wall less cpu: in the function itself, and including what it called' },
					element('th', { scope: 'row' }, 'wait: own, cumulative'),
					cell(row.wait),
					cell(row.cum_wait),
				),
			),
			row.inflight
				? element('caption', {}, `${count(row.inflight)} of them still running when this was taken`)
				: '',
		);
	}

	list(kind, title, edges, end) {
		const field = this.clock === 'calls' ? 'ncalls' : `cum_${this.clock}`;
		const body = element('tbody');
		const heading = `${title} ${count(edges.length)} function${edges.length === 1 ? '' : 's'}`;
		const more = element(
			'button',
			{
				type: 'button',
				click: () => {
					this.fill(body, edges, AT_FIRST, edges.length, end, field);
					more.remove();
				},
			},
			`Show all ${count(edges.length)}`,
		);

		edges.sort((a, b) => b[field] - a[field]);
		this.fill(body, edges, 0, Math.min(AT_FIRST, edges.length), end, field);
		return element(
			'section',
			{ class: kind },
			element('h4', {}, heading),
			edges.length ? this.edgeTable(kind, body) : '',
			edges.length > AT_FIRST ? more : '',
		);
	}

	edgeTable(kind, body) {
		const clock = this.clock === 'calls' ? 'cpu' : this.clock;
		const head = ['function', 'ncalls', `tottime ${clock}`, `cumtime ${clock}`];

		return element(
			'table',
			{ 'aria-label': kind },
			element('thead', {}, element('tr', {}, ...head.map((h) => element('th', { scope: 'col' }, h)))),
			body,
		);
	}

	fill(body, edges, from, to, end, field) {
		const clock = this.clock === 'calls' ? 'cpu' : this.clock;
		const largest = edges.length ? edges[0][field] : 0;

		for (const e of edges.slice(from, to)) {
			const calls = e.ncalls === e.pcalls ? count(e.ncalls) : `${count(e.ncalls)}/${count(e.pcalls)}`;
			const row = element(
				'tr',
				{},
				element('td', {}, this.link(e[end])),
				element('td', { title: count(e.ncalls) }, calls),
				element('td', { title: nanoseconds(e[`tot_${clock}`]) }, time(e[`tot_${clock}`])),
				element('td', { title: nanoseconds(e[`cum_${clock}`]) }, time(e[`cum_${clock}`])),
			);

			row.dataset.id = e[end];
			row.style.setProperty('--part', largest ? e[field] / largest : 0);
			body.append(row);
		}
	}

	link(id) {
		const f = this.report.functions[id];

		if (!f)
			return element('em', {}, 'outside Python');
		return element(
			'button',
			{
				type: 'button',
				class: 'link',
				title: `${shortened(f.label)}\n${shortened(f.where)}`,
				click: () => this.onSelect(id),
			},
			element('bdi', {}, shortened(f.label, 120)),
		);
	}
}
