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
import { columnsOf } from './measures.js';
import { count, element, nanoseconds, percent, plusMinus, shortened, tail, time } from './text.js';

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
	columnDefaults: { headerSortTristate: false, headerSortStartingDir: 'desc', vertAlign: 'middle', resizable: 'header' },
};

// Field, heading, help, and which kind of measurement has it: see readModes() in data.js. What needs
// calls and times, or the one clock and the other, needs tracing, as wall time does.
const CALLS = [
	['ncalls', 'ncalls', 'calls', 'calls'],
	['pcalls', 'pcalls', 'primitive calls: made while the function was not on the stack already', 'calls'],
	['inflight', 'running', 'calls that had not returned when the snapshot was taken', 'wall'],
];
// Of all threads together; ncalls is the sum of both.
const RESUMED = [
	['started', 'calls', 'ncalls without resumptions of generators and coroutines'],
	['resumed', 'resumed', 'of ncalls, resumptions of generators and coroutines'],
];
const TIMES = [
	['tot_cpu', 'tottime cpu', 'CPU time in the function itself', 'cpu'],
	['cum_cpu', 'cumtime cpu', 'CPU time including what it called; recursion counted once', 'cpu'],
	['tot_wall', 'tottime wall', 'wall time in the function itself', 'wall'],
	['cum_wall', 'cumtime wall', 'wall time including what it called; recursion counted once', 'wall'],
	['wait', 'wait', 'tottime wall less tottime cpu: waiting for I/O, locks, a CPU', 'wall'],
	['cum_wait', 'cum wait', 'cumtime wall less cumtime cpu', 'wall'],
	['percall_tot_cpu', 'tot/call cpu', 'tottime cpu per call', 'wall'],
	['percall_cum_cpu', 'cum/call cpu', 'cumtime cpu per primitive call', 'wall'],
	['percall_tot_wall', 'tot/call wall', 'tottime wall per call', 'wall'],
	['percall_cum_wall', 'cum/call wall', 'cumtime wall per primitive call', 'wall'],
	['min_cpu', 'shortest cpu', 'its shortest call, callees included', 'wall'],
	['max_cpu', 'longest cpu', 'its longest call, callees included', 'wall'],
	['min_wall', 'shortest wall', 'its shortest call, callees included', 'wall'],
	['max_wall', 'longest wall', 'its longest call, callees included', 'wall'],
];
const DURATIONS = ['cpu', 'wall'].flatMap((clock) =>
	[50, 90, 99].map((p) => [
		`p${p}_${clock}`,
		`p${p} ${clock}`,
		`${p} % of its calls took no longer, callees included, less what probes cost; of all threads`,
		'wall',
	]),
);
// Of the total of the measure that the page is about
const SHARE = ['share', 'own %', 'own share of the chosen measure, of its total'];
// Columns that a reader has not chosen are those that fit, in this order: the measure's own come first.
const WANTED = ['ncalls', 'tot_cpu', 'cum_cpu', 'tot_wall', 'cum_wall', 'wait', 'resumed'];
const SHARE_WIDTH = 82;
const SHARE_NARROW = 64;
const NAME = 120; // pixels that a name has in any case
const NAME_WANTED = 220; // and where there is room
const NARROW = 92;
const NARROWEST = 78; // in a narrow window
const SMALL = 600; // pixels of a table in one

// Shares of a total have a bar behind them: the field with the total of such a field.
function wholeOf(field) {
	return /^(tot|cum)_(?!wait)/.test(field) ? field.replace(/^cum/, 'tot') : null;
}

// What can be chosen of this report: field, heading, help, how it is written, short and exact.
function figuresOf(report) {
	const figure = (text, exact) => ([field, title, help]) => ({ field, title, help, text, exact });
	const measured = ([, , , needs]) => report.has[needs];
	const optional = columnsOf(report).flatMap(({ self, cum, headings, help, text, exact }) => [
		{ field: self, title: headings[0], help: `${help}, in the function itself`, text, exact },
		{ field: cum, title: headings[1], help: `${help}, including what it called; recursion counted once`, text, exact },
	]);

	return [
		...CALLS.filter(measured).map(figure(count, (n) => `${count(n)} calls`)),
		...(report.resumed ? RESUMED : []).map(figure(count, (n) => `${count(n)}`)),
		...TIMES.filter(measured).map(figure(time, nanoseconds)),
		...(report.durations ? DURATIONS : []).map(figure(time, nanoseconds)),
		...optional,
	];
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
		this.measure = null;
		this.chosen = false; // columns, by the reader
		this.empty = new Set();
		this.onSelect = onSelect;
		this.figures = figuresOf(report);
		this.help = Object.fromEntries([[SHARE[0], SHARE[2]], ...this.figures.map(({ field, help }) => [field, help])]);
		this.total = {};
		this.errors = null;
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
		this.resized = new ResizeObserver(() => this.ready.then(() => this.resize()));
		this.resized.observe(box);
	}

	// Before another table takes its place.
	close() {
		this.resized.disconnect();
		this.chooser?.replaceChildren();
		this.table.destroy();
	}

	// What the reader has chosen of it, for the table that takes its place.
	state() {
		const [sorted] = this.table.getSorters();

		return {
			shown: this.chosen && this.visibleFigures().map(({ field }) => field),
			sort: sorted && { field: sorted.field, dir: sorted.dir },
		};
	}

	restore({ shown, sort }) {
		const known = (field) => field === 'label' || field === SHARE[0] || this.figures.some((f) => f.field === field);

		this.chosen = Boolean(shown);
		if (shown)
			for (const { field } of this.figures)
				this.setVisible(field, shown.includes(field));
		if (sort && known(sort.field))
			this.table.setSort(sort.field, sort.dir);
	}

	// A later report of the same profile, with the same columns; its rows follow.
	setReport(report) {
		this.report = report;
	}

	columns() {
		const number = (figure) => ({
			field: figure.field,
			title: figure.title,
			hozAlign: 'right',
			headerHozAlign: 'right',
			width: this.width(figure.field),
			headerWordWrap: true,
			visible: WANTED.includes(figure.field),
			sorter: nullsLast,
			formatter: (cell) => this.figureCell(cell, figure),
		});

		return [
			{
				field: 'label',
				title: 'function',
				minWidth: NAME,
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
			{
				field: SHARE[0],
				title: SHARE[1],
				hozAlign: 'right',
				headerHozAlign: 'right',
				headerWordWrap: true,
				width: this.shareWidth(),
				sorter: (a, b, rowA, rowB) => this.shareOf(rowA.getData()) - this.shareOf(rowB.getData()),
				formatter: (cell) => this.shareCell(cell.getData()),
			},
			...this.figures.map(number),
		];
	}

	shareWidth() {
		return this.box.clientWidth < SMALL ? SHARE_NARROW : SHARE_WIDTH;
	}

	shareOf(row) {
		return this.measure ? row[this.measure.self] ?? 0 : 0;
	}

	shareCell(row) {
		const own = this.shareOf(row);

		return element('span', { class: own ? '' : 'none' }, this.measure ? percent(own, this.total[this.measure.self]) : '');
	}

	// Room for an error, or for primitive calls.
	width(field) {
		const error = this.report.errors?.[field]?.some(Boolean) ? 60 : 0;

		if (this.box.clientWidth < SMALL)
			return NARROWEST + error;
		return (field === 'ncalls' ? 132 : NARROW) + error;
	}

	// Figures that no reader has chosen: the measure's, and of the others what fits beside the names.
	fit() {
		const small = this.box.clientWidth < SMALL;
		const known = (field) => this.figures.some((f) => f.field === field) && !this.empty.has(field);
		const first = this.measure ? [this.measure.self, this.measure.cum] : [];
		let left = this.box.clientWidth - (small ? NAME : NAME_WANTED) - this.shareWidth() - 20;

		if (this.chosen || !this.measure)
			return;
		const shown = [...new Set([...first, ...WANTED.filter(known)])].filter((field) => {
			const fits = left >= this.width(field);

			left -= fits ? this.width(field) : Infinity;
			return fits || field === first[0];
		});
		const changes = this.figures.map(({ field }) => this.setVisible(field, shown.includes(field)));
		if (changes.some(Boolean))
			this.table.redraw();
	}

	resize() {
		const small = this.box.clientWidth < SMALL;

		if (small !== this.small && this.small !== undefined) {
			this.table.getColumn(SHARE[0]).setWidth(this.shareWidth());
			for (const { field } of this.figures)
				this.table.getColumn(field).setWidth(this.width(field));
		}
		this.small = small;
		this.fit();
	}

	nameCell(row) {
		return element(
			'span',
			{ class: 'function', title: `${shortened(row.label)}\n${shortened(row.where)}` },
			element('bdi', { class: 'name' }, shortened(row.label, 200)),
			element('bdi', { class: 'where' }, shortened(tail(row.where), 200)),
		);
	}

	figureCell(cell, { field, text, exact }) {
		const n = cell.getValue();
		const { id } = cell.getData();
		const whole = this.total[wholeOf(field)];
		const error = this.errors?.[field]?.[id];

		if (n === null)
			return element('span', { class: 'none' }, '–');
		const span = element('span', { title: exact(n), class: n ? '' : 'none' }, text(n));
		if (field === 'ncalls')
			this.addPrimitive(span, cell.getData());
		if (error !== undefined && this.report.errors[field].some(Boolean)) // an unknown error leaves its place empty
			span.append(element('small', { class: 'error' }, plusMinus(error, text)));
		if (typeof error === 'number')
			span.title += ` ± ${exact(error)} (standard error)`;
		if (whole) {
			span.title += `, ${percent(n, whole)}`;
			cell.getElement().classList.add('bar');
			cell.getElement().style.setProperty('--part', Math.min(1, n / whole));
		}
		return span;
	}

	// cProfile's way of showing recursion: calls/primitive calls.
	addPrimitive(span, { ncalls, pcalls }) {
		if (ncalls !== pcalls)
			span.append(element('small', {}, ` /${count(pcalls)}`));
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
		dressHeaders(this.table, this.help);
		this.choice(chooser);
	}

	choice(chooser) {
		this.chooser = chooser;
		for (const column of this.table.getColumns().slice(1)) {
			const box = element('input', {
				type: 'checkbox',
				checked: column.isVisible(),
				value: column.getField(),
				change: () => {
					this.chosen = true;
					return box.checked ? column.show() : column.hide();
				},
			});

			chooser.append(
				element(
					'label',
					{ title: this.help[column.getField()] },
					box,
					` ${column.getDefinition().title}`,
				),
			);
		}
	}

	async set({ rows, total, errors }) {
		await this.ready;
		this.total = total;
		this.errors = errors;
		this.ids = new Set(rows.map((r) => r.id));
		await this.table.replaceData(rows);
		if (this.match)
			this.filter(this.match);
	}

	// Columns of what was not measured at all, in the whole report, are not shown unless they are chosen.
	hideEmpty({ ncalls, tot_cpu, tot_wall }) {
		this.empty = new Set([
			...(ncalls ? [] : ['ncalls']),
			...(tot_cpu ? [] : ['tot_cpu', 'cum_cpu']),
			...(tot_wall ? [] : ['tot_wall', 'cum_wall', 'wait']),
		]);
		this.fit();
	}

	// The table's column and the chooser's box; nothing where the report has no such column. Returns
	// whether it changed.
	setVisible(field, visible) {
		if (!this.figures.some((f) => f.field === field))
			return false;
		const column = this.table.getColumn(field);

		if (column.isVisible() === visible)
			return false;
		if (visible)
			column.show();
		else
			column.hide();
		this.chooser.querySelector(`input[value=${field}]`).checked = visible;
		return true;
	}

	// By a measure's own share, which is shown then, as is its cumulative one.
	sortBy(measure) {
		const { self, cum } = measure;

		this.setMeasure(measure);
		for (const field of [self, cum])
			this.setVisible(field, true);
		this.fit();
		this.table.setSort(self, 'desc');
		this.reveal(cum);
		this.reveal(self);
	}

	// What shares are of.
	setMeasure(measure) {
		if (this.measure === measure)
			return;
		this.measure = measure;
		this.table.redraw(true);
	}

	// Scroll sideways as far as it takes: the name's column stays.
	reveal(field) {
		if (!this.table.getColumn(field).isVisible())
			return;
		const [name] = this.table.getColumns();
		const column = this.table.getColumn(field).getElement();
		const right = column.offsetLeft + column.offsetWidth - this.holder.clientWidth;
		const left = column.offsetLeft - name.getElement().offsetWidth;

		this.holder.scrollLeft = Math.min(Math.max(this.holder.scrollLeft, right), left);
	}

	// What is shown of the figures, for other tables of them.
	visibleFigures() {
		return this.figures.filter(({ field }) => this.table.getColumn(field).isVisible());
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
		if (!scroll || !row || (this.match && !this.match[id]))
			return;
		const { scrollLeft } = this.holder; // up and down only

		await this.table.scrollToRow(row, 'center', false).catch(() => {});
		this.holder.scrollLeft = scrollLeft;
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
