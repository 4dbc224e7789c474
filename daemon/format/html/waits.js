// SPDX-License-Identifier: BSD-2-Clause
// The view "Why it waits": functions with a bar of their reasons for waiting, and pairs of functions of
// which one held the GIL while the other waited.

import { bar, legend, partsOf, REASONS } from './reasons.js';
import { steady } from './steady.js';
import { count, element, nanoseconds, shortened, tail, time, visible } from './text.js';

const AT_FIRST = 20; // rows of a table before the reader asks for more
const STEP = 100;
const WHY_NOT = 'no reasons were recorded';
const MEASURED_BY = 'It is measured in every mode, but not by --continuous, nor if no thread list was found.';

// Figures of a function: its own, or with all that it called.
function figure(row, kind) {
	return (key) => row[`${kind}_${key}`] ?? 0;
}

function waiting(row, kind) {
	return REASONS.reduce((n, key) => n + figure(row, kind)(key), 0);
}

export class Waits {
	// parts: view, table, legend, note, held, pairs; onSelect(function id)
	constructor(parts, report, onSelect) {
		this.parts = parts;
		this.report = report;
		this.onSelect = onSelect;
		this.sort = 'tot';
		this.match = null;
		this.rows = [];
		this.lengths = {}; // rows that the reader wants, by table
		this.setReport(report);
	}

	// A later report of the same profile; its figures follow.
	setReport(report) {
		const { parts } = this;

		this.report = report;
		parts.view.classList.toggle('without', !report.has.waits);
		parts.note.replaceChildren(...this.notes().map((text) => element('span', {}, text)));
	}

	// Targets whose reasons were not measured, with the cause; and details that the bars do not show.
	notes() {
		const { targets } = this.report.provenance;
		const missing = targets.filter((t) => !t.waits);
		const process = ({ pid }) => (targets.length > 1 ? `process ${pid}: ` : '');

		if (!this.report.has.waits)
			return [`Not measured: ${missing.length ? WHY_NOT : 'no process'}. ${MEASURED_BY}`];
		return [
			...missing.map((t) => `${process(t)}not measured: ${WHY_NOT}.`),
			...targets.flatMap((t) => [
				t.waits && !t.waits.gil_known ? `${process(t)}the GIL was not found; waiting for it is in lock.` : [],
				t.waits?.walks !== undefined
					? `${process(t)}distributed over functions by ${t.waits.walks} stacks of waiting threads.`
					: [],
				t.waits?.other.length ? `${process(t)}other: ${this.otherCalls(t.waits.other)}.` : [],
				t.waits?.gil_pairs_dropped_ns
					? `${process(t)}${time(t.waits.gil_pairs_dropped_ns)} of waiting for the GIL are left out: too many pairs of functions.`
					: [],
			]),
		].flat();
	}

	otherCalls(calls) {
		return calls
			.slice(0, 5)
			.map((c) => `${visible(c.syscall)} ${time(c.ns)} in ${count(c.count)} waits`)
			.join(', ');
	}

	// Figures of the chosen threads; pairs of the processes that these belong to.
	set({ rows, total }, selected) {
		const pids = new Set(this.report.threads.filter((t) => selected[t.id]).map((t) => t.pid));

		if (!this.report.has.waits)
			return;
		this.rows = rows
			.map((row) => ({ row, tot: waiting(row, 'tot'), cum: waiting(row, 'cum') }))
			.filter(({ row, tot, cum }) => tot || cum || row.tot_gc);
		this.pairs = this.report.pairs.filter((p) => pids.has(p.pid));
		this.parts.legend.replaceChildren(...legend(partsOf(figure(total, 'tot'))));
		steady(this.parts.view, () => this.show());
	}

	// match: true per function, or null for all.
	filter(match) {
		this.match = match;
		if (this.report.has.waits)
			this.show();
	}

	show() {
		const matches = (id) => !this.match || this.match[id];
		const rows = this.rows.filter(({ row }) => matches(row.id));
		const pairs = this.pairs.filter((p) => matches(p.holder) || matches(p.waiter));

		rows.sort((a, b) => b[this.sort] - a[this.sort] || b.cum - a.cum || a.row.id - b.row.id);
		this.parts.table.replaceChildren(...this.table(rows));
		this.parts.held.hidden = !this.pairs.length;
		this.parts.pairs.replaceChildren(...this.pairTable(pairs));
	}

	// ---- bars ----

	table(rows) {
		const longest = rows.reduce((n, { row }) => Math.max(n, figure(row, this.sort)('wall')), 0);
		const line = ({ row, tot, cum }) =>
			element(
				'tr',
				{ 'data-id': row.id },
				element(
					'td',
					{},
					element('div', { class: 'why' }, this.link(row.id), bar(partsOf(figure(row, this.sort)), longest)),
				),
				element('td', { title: nanoseconds(tot) }, time(tot)),
				element('td', { title: nanoseconds(cum) }, time(cum)),
			);

		if (!rows.length)
			return [element('p', { class: 'hint' }, this.match ? 'No function that waited matches.' : 'Nothing waited.')];
		return this.limited('functions by waiting', rows, line, [
			element('th', { scope: 'col' }, this.sort === 'tot' ? 'function, own time' : 'function, with what it called'),
			this.heading('tot', 'own waiting', 'waiting in the function itself'),
			this.heading('cum', 'cum waiting', 'waiting including what it called; recursion counted once'),
		]);
	}

	heading(kind, text, help) {
		const press = () => {
			this.sort = kind;
			this.show();
			this.parts.table.querySelector(`[data-sort=${kind}]`)?.focus();
		};

		return element(
			'th',
			{ scope: 'col', 'aria-sort': this.sort === kind ? 'descending' : 'none' },
			element('button', { type: 'button', class: 'sort', 'data-sort': kind, title: `sort by ${help}`, click: press }, text),
		);
	}

	// ---- who held the GIL ----

	pairTable(pairs) {
		const several = this.report.targets.length > 1;
		const name = (id) => element('td', {}, id < 0 ? element('em', {}, 'outside Python') : this.link(id));
		const line = (p) =>
			element(
				'tr',
				{},
				element('td', { title: nanoseconds(p.ns) }, time(p.ns)),
				...(several ? [element('td', {}, String(p.pid))] : []),
				name(p.holder),
				name(p.waiter),
			);
		const heads = ['waited', ...(several ? ['process'] : []), 'while held by', 'waiter'];

		if (!pairs.length)
			return [element('p', { class: 'hint' }, 'No pair matches.')];
		return this.limited('the GIL held against others', pairs, line, heads.map((h) => element('th', { scope: 'col' }, h)));
	}

	// ---- both ----

	// A table of the first rows, and a button that appends more.
	limited(label, rows, line, heads) {
		const body = element('tbody');
		const more = element('button', {
			type: 'button',
			class: 'more',
			click: () => {
				const from = body.childElementCount;

				append(STEP);
				body.children[from].querySelector('button')?.focus();
			},
		});
		const append = (n) => {
			const from = body.childElementCount;

			body.append(...rows.slice(from, from + n).map(line));
			const left = rows.length - body.childElementCount;
			this.lengths[label] = body.childElementCount;
			more.hidden = !left;
			more.textContent = `Show ${count(Math.min(STEP, left))} more of ${count(left)}`;
		};

		append(Math.max(AT_FIRST, this.lengths[label] ?? 0));
		return [
			element('table', { 'aria-label': label }, element('thead', {}, element('tr', {}, ...heads)), body),
			more,
		];
	}

	link(id) {
		const f = this.report.functions[id];

		return element(
			'button',
			{
				type: 'button',
				class: 'link',
				title: `${shortened(f.label)}\n${shortened(f.where)}`,
				click: () => this.onSelect(id),
			},
			element('bdi', { class: 'name' }, shortened(f.label, 120)),
			' ',
			element('bdi', { class: 'where' }, shortened(tail(f.where), 120)),
		);
	}
}
