// SPDX-License-Identifier: BSD-2-Clause
// The table of functions: sortable, columns at choice, rows made as they come into view (tabulator).

import {
	FilterModule,
	FormatModule,
	FrozenColumnsModule,
	InteractionModule,
	ResizeColumnsModule,
	ResizeTableModule,
	SortModule,
	Tabulator,
} from 'tabulator-tables';
import { count, element, nanoseconds, percent, shortened, time } from './text.js';

Tabulator.registerModule([
	FilterModule,
	FormatModule,
	FrozenColumnsModule,
	InteractionModule,
	ResizeColumnsModule,
	ResizeTableModule,
	SortModule,
]);

// What every table of this page has in common.
export const COMMON = {
	layout: 'fitColumns',
	headerSortClickElement: 'header',
	columnDefaults: { headerSortTristate: false, headerSortStartingDir: 'desc', vertAlign: 'middle' },
};

export const TIMES = [
	['tot_cpu', 'tottime cpu', 'CPU time in the function itself'],
	['cum_cpu', 'cumtime cpu', 'CPU time including what it called; recursion counted once'],
	['tot_wall', 'tottime wall', 'wall time in the function itself'],
	['cum_wall', 'cumtime wall', 'wall time including what it called; recursion counted once'],
	['wait', 'wait', 'tottime wall less tottime cpu: waiting for I/O, locks, a CPU'],
	['cum_wait', 'cum wait', 'cumtime wall less cumtime cpu'],
	['percall_tot_cpu', 'tot/call cpu', 'tottime cpu per call'],
	['percall_cum_cpu', 'cum/call cpu', 'cumtime cpu per primitive call'],
	['percall_tot_wall', 'tot/call wall', 'tottime wall per call'],
	['percall_cum_wall', 'cum/call wall', 'cumtime wall per primitive call'],
	['min_cpu', 'shortest cpu', 'its shortest call, callees included'],
	['max_cpu', 'longest cpu', 'its longest call, callees included'],
	['min_wall', 'shortest wall', 'its shortest call, callees included'],
	['max_wall', 'longest wall', 'its longest call, callees included'],
];
const COUNTS = [
	['ncalls', 'ncalls', 'calls'],
	['pcalls', 'pcalls', 'primitive calls: made while the function was not on the stack already'],
	['inflight', 'running', 'calls that had not returned when the snapshot was taken'],
];
const SHOWN = new Set(['ncalls', 'tot_cpu', 'cum_cpu', 'tot_wall', 'cum_wall', 'wait']);
const HELP = Object.fromEntries([...COUNTS, ...TIMES].map(([field, , help]) => [field, help]));
// Shares of a total have a bar behind them.
const BARS = { tot_cpu: 'tot_cpu', cum_cpu: 'tot_cpu', tot_wall: 'tot_wall', cum_wall: 'tot_wall' };

// The end of a path says most: the rest is in the tooltip.
function tail(where) {
	return where.split('/').slice(-2).join('/');
}

function nullsLast(a, b, rowA, rowB, column, dir) {
	if (a === null || b === null)
		return a === b ? 0 : (a === null) === (dir === 'asc') ? 1 : -1;
	return a - b;
}

function sortBy(table, column) {
	const now = table.getSorters()[0];
	const first = column.getDefinition().headerSortStartingDir ?? 'desc';
	const again = now && now.field === column.getField() && now.dir === first;

	table.setSort(column.getField(), again ? (first === 'desc' ? 'asc' : 'desc') : first);
}

// Headings explain themselves, and sort by keyboard as well.
export function dressHeaders(table, help) {
	for (const column of table.getColumns()) {
		const header = column.getElement();

		if (column.getDefinition().headerSort === false)
			continue;
		header.tabIndex = 0;
		header.title = help[column.getField()] ?? '';
		header.addEventListener('keydown', (event) => {
			if (event.key !== 'Enter' && event.key !== ' ')
				return;
			event.preventDefault();
			sortBy(table, column);
		});
	}
}

export class Functions {
	constructor(box, chooser, report, onSelect) {
		this.box = box;
		this.report = report;
		this.onSelect = onSelect;
		this.total = {};
		this.current = -1;
		this.selected = -1;
		this.table = new Tabulator(box, {
			...COMMON,
			data: [],
			index: 'id',
			height: '100%',
			columns: this.columns(),
			placeholder: 'No function matches.',
			rowFormatter: (row) => this.dress(row),
		});
		this.ready = new Promise((resolve) => this.table.on('tableBuilt', resolve));
		this.table.on('rowClick', (event, row) => this.choose(row));
		this.table.on('dataSorted', (sorters, rows) => this.remember(rows));
		this.ready.then(() => this.built(chooser));
	}

	columns() {
		const number = (field, title, formatter) => ({
			field,
			title,
			hozAlign: 'right',
			headerHozAlign: 'right',
			width: field === 'ncalls' ? 132 : 92,
			headerWordWrap: true,
			visible: SHOWN.has(field),
			sorter: nullsLast,
			formatter,
		});

		return [
			{
				field: 'label',
				title: 'function',
				minWidth: 300,
				widthGrow: 1,
				frozen: true,
				headerSortStartingDir: 'asc',
				formatter: (cell) => this.nameCell(cell.getData()),
			},
			{
				field: 'where',
				title: 'file:line',
				width: 220,
				visible: false,
				headerSortStartingDir: 'asc',
				formatter: (cell) => element('bdi', {}, shortened(cell.getValue())),
			},
			...COUNTS.map(([field, title]) => number(field, title, (cell) => this.countCell(cell))),
			...TIMES.map(([field, title]) => number(field, title, (cell) => this.timeCell(cell))),
		];
	}

	nameCell(row) {
		return element(
			'span',
			{ class: 'function', title: `${shortened(row.label)}\n${shortened(row.where)}` },
			element('bdi', { class: 'name' }, shortened(row.label, 200)),
			element('bdi', { class: 'where' }, shortened(tail(row.where), 200)),
		);
	}

	// cProfile's way of showing recursion: calls/primitive calls.
	countCell(cell) {
		const { ncalls, pcalls } = cell.getData();
		const n = cell.getValue();

		if (cell.getField() !== 'ncalls' || ncalls === pcalls)
			return element('span', {}, count(n));
		return element('span', { title: `${count(n)} calls` }, count(n), element('small', {}, ` /${count(pcalls)}`));
	}

	timeCell(cell) {
		const ns = cell.getValue();
		const field = cell.getField();
		const whole = this.total[BARS[field]];

		if (ns === null)
			return element('span', { class: 'none' }, '–');
		const span = element('span', { title: nanoseconds(ns), class: ns ? '' : 'none' }, time(ns));
		if (whole) {
			span.title += `, ${percent(ns, whole)}`;
			cell.getElement().classList.add('bar');
			cell.getElement().style.setProperty('--part', Math.min(1, ns / whole));
		}
		return span;
	}

	// The row of a function, if it has one.
	row(id) {
		return (this.ids?.has(id) && this.table.getRow(id)) || null;
	}

	dress(row) {
		const e = row.getElement();
		const { id } = row.getData();

		e.id = `row-${id}`;
		e.classList.toggle('selected', id === this.selected);
		e.classList.toggle('current', id === this.current);
		e.setAttribute('aria-selected', id === this.selected);
	}

	built(chooser) {
		const holder = this.box.querySelector('.tabulator-tableholder');

		holder.tabIndex = 0;
		holder.setAttribute('aria-label', 'functions; arrow keys move, Enter shows callers and callees');
		holder.addEventListener('keydown', (event) => this.key(event));
		this.holder = holder;
		dressHeaders(this.table, HELP);
		this.choice(chooser);
	}

	choice(chooser) {
		this.chooser = chooser;
		for (const column of this.table.getColumns().slice(1)) {
			const box = element('input', {
				type: 'checkbox',
				checked: column.isVisible(),
				value: column.getField(),
				change: () => (box.checked ? column.show() : column.hide()),
			});

			chooser.append(
				element(
					'label',
					{ title: HELP[column.getField()] },
					box,
					` ${column.getDefinition().title}`,
				),
			);
		}
	}

	async set({ rows, total }) {
		await this.ready;
		this.total = total;
		this.ids = new Set(rows.map((r) => r.id));
		await this.table.replaceData(rows);
		if (this.match)
			this.filter(this.match);
	}

	// Columns of what was not measured at all, in the whole report.
	hideEmpty({ ncalls, tot_cpu, tot_wall }) {
		const fields = [
			...(ncalls ? [] : ['ncalls']),
			...(tot_cpu ? [] : ['tot_cpu', 'cum_cpu']),
			...(tot_wall ? [] : ['tot_wall', 'cum_wall', 'wait']),
		];

		for (const field of fields) {
			this.table.getColumn(field).hide();
			this.chooser.querySelector(`input[value=${field}]`).checked = false;
		}
		if (fields.length)
			this.table.redraw();
	}

	sort(field) {
		this.table.setSort(field, 'desc');
	}

	// match: true per function, or null for all.
	filter(match) {
		this.match = match;
		if (match)
			this.table.setFilter((row) => match[row.id]);
		else
			this.table.clearFilter();
	}

	remember(rows) {
		this.order = rows;
	}

	shown() {
		return this.table.getRows('active');
	}

	choose(row) {
		this.current = row.getData().id;
		this.onSelect(this.current);
	}

	// Mark a function's row and bring it into view, if it has one.
	async select(id, scroll) {
		const before = [this.selected, this.current];

		this.selected = this.current = id;
		for (const i of [...before, id]) {
			const row = this.row(i);
			if (row)
				this.dress(row);
		}
		const row = this.row(id);
		if (scroll && row && (!this.match || this.match[id]))
			await this.table.scrollToRow(row, 'center', false).catch(() => {});
	}

	key(event) {
		const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };

		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (event.key in steps) {
			event.preventDefault();
			this.move(steps[event.key]);
		} else if (event.key === 'Enter' || event.key === ' ') {
			const row = this.row(this.current);

			event.preventDefault();
			if (row)
				this.choose(row);
		}
	}

	move(step) {
		const rows = this.shown();
		const from = rows.findIndex((r) => r.getData().id === this.current);
		const to = Math.max(0, Math.min(rows.length - 1, from < 0 ? 0 : from + step));
		const before = this.row(this.current);

		if (!rows.length)
			return;
		this.current = rows[to].getData().id;
		if (before)
			this.dress(before);
		this.table.scrollToRow(rows[to], 'nearest', false).catch(() => {});
		this.dress(rows[to]);
		this.holder.setAttribute('aria-activedescendant', `row-${this.current}`);
	}
}
