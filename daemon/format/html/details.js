// SPDX-License-Identifier: BSD-2-Clause
// One function: its figures, who called it, what it called. Callers and callees lead on to theirs.

import { columnsOf } from './measures.js';
import { perCallTexts } from './percall.js';
import { steady } from './steady.js';
import { count, element, nanoseconds, percent, plusMinus, shortened, time, visible } from './text.js';

// Figures on both clocks, and what kind of measurement has them, as in functions.js.
const FIGURES = [
	['tottime', 'in the function itself', 'tot_cpu', 'tot_wall', 'cpu'],
	['cumtime', 'including what it called; recursion counted once', 'cum_cpu', 'cum_wall', 'cpu'],
	['tottime per call', 'per call', 'percall_tot_cpu', 'percall_tot_wall', 'wall'],
	['cumtime per call', 'per primitive call', 'percall_cum_cpu', 'percall_cum_wall', 'wall'],
	['shortest call', 'what it called included', 'min_cpu', 'min_wall', 'wall'],
	['longest call', 'what it called included', 'max_cpu', 'max_wall', 'wall'],
];
const AT_FIRST = 50; // callers or callees listed before one asks for all
const LINES = 50; // those with the most time are shown

export class Details {
	// onSelect(function id), onFlame(function id)
	constructor(box, report, onSelect, onFlame) {
		this.box = box;
		this.report = report;
		this.onSelect = onSelect;
		this.onFlame = onFlame;
		this.optionals = columnsOf(report);
		this.id = -1;
		this.whole = new Set(); // lists of which the reader wants all
	}

	// A later report of the same profile
	setReport(report) {
		this.report = report;
	}

	set({ rows, edgesOf, errors, ownLines }, measure) {
		this.rows = new Map(rows.map((r) => [r.id, r]));
		this.edgesOf = edgesOf;
		this.errors = errors;
		this.ownLines = ownLines;
		this.measure = measure;
		steady(this.box, () => this.draw());
	}

	show(id) {
		if (this.id !== id)
			this.whole.clear();
		this.id = id;
		this.draw();
	}

	draw() {
		const { id } = this;
		const f = this.report.functions[id];

		if (!f) {
			this.box.replaceChildren(
				element('p', { class: 'hint' }, 'Choose a function to see who called it and what it called.'),
			);
			return;
		}
		const row = this.rows.get(id);
		this.box.replaceChildren(
			this.heading(f, row),
			...(row ? this.figures(row) : [element('p', {}, 'Not called in the chosen threads.')]),
			this.lines(id),
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
			row && this.report.has.stacks
				? element(
						'button',
						{ type: 'button', click: () => this.onFlame(f.id) },
						'Show in the flame graph',
					)
				: '',
		);
	}

	figures(row) {
		const { has } = this.report;

		return [
			has.calls ? element('p', { class: 'calls' }, this.calls(row)) : '',
			row.inflight
				? element('p', { class: 'hint' }, `${count(row.inflight)} of them still running when this was taken`)
				: '',
			has.cpu || has.wall ? this.times(row) : '',
			this.optionals.length ? this.optional(row) : '',
		];
	}

	// cProfile's way of showing recursion: calls/primitive calls.
	calls(row) {
		const n = row.ncalls === row.pcalls ? count(row.ncalls) : `${count(row.ncalls)}/${count(row.pcalls)}`;
		const error = plusMinus(this.errors?.ncalls?.[row.id], count);

		return `${n}${error && ` ${error}`} call${row.ncalls === 1 ? '' : 's'}`;
	}

	// A figure, its error below it where that is known.
	cell(row, field, text, exact) {
		const n = row[field];
		const error = this.errors?.[field]?.[row.id];

		if (n === null)
			return element('td', { class: 'none' }, '–');
		if (typeof error !== 'number')
			return element('td', { title: exact(n) }, text(n));
		return element(
			'td',
			{ title: `${exact(n)} ± ${exact(error)} (standard error)` },
			text(n),
			element('small', { class: 'error' }, plusMinus(error, text)),
		);
	}

	table(label, heads, lines) {
		return element(
			'table',
			{ class: 'figures', 'aria-label': label },
			element(
				'thead',
				{},
				element('tr', {}, element('td'), ...heads.map((h) => element('th', { scope: 'col' }, h))),
			),
			element(
				'tbody',
				{},
				...lines.map(([title, help, ...cells]) =>
					element('tr', { title: help }, element('th', { scope: 'row' }, title), ...cells),
				),
			),
		);
	}

	times(row) {
		const { has } = this.report;
		const cell = (field) => this.cell(row, field, time, nanoseconds);
		const lines = FIGURES.filter((figure) => has[figure[4]]).map(([title, help, cpu, wall]) => [
			title,
			help,
			...(has.cpu ? [cell(cpu)] : []),
			...(has.wall ? [cell(wall)] : []),
		]);

		if (has.wall)
			lines.push([
				'wait: own, cumulative',
				'wall less cpu: in the function itself, and including what it called',
				cell('wait'),
				cell('cum_wait'),
			]);
		return this.table('times', ['cpu', 'wall'].filter((clock) => has[clock]), lines);
	}

	optional(row) {
		return this.table(
			'resources',
			['self', 'cum'],
			this.optionals.map(({ title, help, self, cum, text, exact }) => [
				title,
				help,
				this.cell(row, self, text, exact),
				this.cell(row, cum, text, exact),
			]),
		);
	}

	// The function's own CPU time by source line, from samples.
	lines(id) {
		const all = this.ownLines?.[id];

		if (!all)
			return '';
		const total = all.reduce((sum, l) => sum + l.self, 0);
		const largest = Math.max(...all.map((l) => l.self));
		const shown = [...all]
			.sort((a, b) => b.self - a.self)
			.slice(0, LINES)
			.sort((a, b) => a.line - b.line);
		const body = element('tbody');

		for (const l of shown) {
			const row = element(
				'tr',
				{ title: `${count(l.samples)} sample${l.samples === 1 ? '' : 's'}` },
				element('th', { scope: 'row' }, l.line ? `line ${l.line}` : 'unknown'),
				element('td', {}, percent(l.self, total)),
				element(
					'td',
					{ title: `${nanoseconds(l.self)} ± ${nanoseconds(l.error)} (standard error)` },
					time(l.self),
					element('small', { class: 'error' }, plusMinus(l.error, time)),
				),
			);

			row.style.setProperty('--part', largest ? l.self / largest : 0);
			body.append(row);
		}
		return element(
			'section',
			{ class: 'lines' },
			element('h4', {}, `own cpu time by line${shown.length < all.length ? `, the ${LINES} largest` : ''}`),
			element('table', { class: 'figures', 'aria-label': 'lines' }, body),
		);
	}

	list(kind, title, edges, end) {
		const field = this.measure.cum;
		const body = element('tbody');
		const heading = `${title} ${count(edges.length)} function${edges.length === 1 ? '' : 's'}`;
		const more = element(
			'button',
			{
				type: 'button',
				click: () => {
					this.whole.add(kind);
					this.fill(body, edges, AT_FIRST, edges.length, end, field);
					more.remove();
				},
			},
			`Show all ${count(edges.length)}`,
		);

		edges.sort((a, b) => b[field] - a[field]);
		const all = this.whole.has(kind) || edges.length <= AT_FIRST;
		this.fill(body, edges, 0, all ? edges.length : AT_FIRST, end, field);
		return element(
			'section',
			{ class: kind },
			element('h4', {}, heading),
			edges.length ? this.edgeTable(kind, body) : '',
			all ? '' : more,
		);
	}

	// Own and cumulative shares of an edge: none of calls, whose number stands in any case.
	shares() {
		const { measure } = this;

		return measure.key === 'calls' ? [] : [measure.self, measure.cum];
	}

	edgeTable(kind, body) {
		const calls = this.report.has.calls ? ['ncalls'] : [];
		const shares = this.shares().length ? this.measure.headings : [];
		const head = ['function', ...calls, ...shares];

		return element(
			'table',
			{ 'aria-label': kind },
			element('thead', {}, element('tr', {}, ...head.map((h) => element('th', { scope: 'col' }, h)))),
			body,
		);
	}

	fill(body, edges, from, to, end, field) {
		const { text, exact } = this.measure;
		const largest = edges.length ? edges[0][field] : 0;

		for (const e of edges.slice(from, to)) {
			const calls = e.ncalls === e.pcalls ? count(e.ncalls) : `${count(e.ncalls)}/${count(e.pcalls)}`;
			const row = element(
				'tr',
				{},
				element('td', {}, this.link(e[end]), this.perCall(e)),
				this.report.has.calls ? element('td', { title: count(e.ncalls) }, calls) : '',
				...this.shares().map((key) => element('td', { title: exact(e[key]) }, text(e[key]))),
			);

			row.dataset.id = e[end];
			row.style.setProperty('--part', largest ? e[field] / largest : 0);
			body.append(row);
		}
	}

	// Calls per call of the caller, where that is known.
	perCall({ perCall: known, caller }) {
		if (!known)
			return '';
		const [text, error] = perCallTexts(known);
		const { label } = this.report.functions[caller];

		return element(
			'small',
			{ class: 'per-call', title: `${text} of ${shortened(label, 120)}${error && ` ${error} (standard error)`}` },
			text,
			error && element('span', { class: 'error' }, ` ${error}`),
		);
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
