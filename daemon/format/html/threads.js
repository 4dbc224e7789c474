// SPDX-License-Identifier: BSD-2-Clause
// Threads: what each used, when it was there, and which of them the rest of the page is about.

import { Tabulator } from 'tabulator-tables';
import { COMMON, dressHeaders } from './functions.js';
import { columnsOf } from './measures.js';
import { count, element, nanoseconds, percent, shortened, time } from './text.js';

const HELP = {
	calls: 'calls of Python functions',
	cpu: 'CPU time while traced, outside Python included',
	wall: 'wall time while traced',
	wait: 'wall less cpu',
	start: 'first seen to last seen; the filled part is the share of CPU time',
};

export class Threads {
	// onChange() when other threads are chosen: see selected.
	constructor(box, report, onChange) {
		this.report = report;
		this.onChange = onChange;
		this.selected = report.threads.map(() => true);
		this.optionals = columnsOf(report);
		this.span();
		const rows = report.threads.map((t) => ({
			...t,
			wait: Math.max(0, t.wall - t.cpu),
			label: `${shortened(t.name, 200) || 'thread'}`,
		}));
		this.table = new Tabulator(box, {
			...COMMON,
			data: rows,
			index: 'id',
			maxHeight: '60vh',
			columns: this.columns(),
			initialSort: [{ column: ['wall', 'cpu', 'calls'].find((key) => report.has[key]), dir: 'desc' }],
			placeholder: 'No threads.',
		});
		this.table.on('tableBuilt', () => {
			dressHeaders(this.table, {
				...HELP,
				...Object.fromEntries(this.optionals.map(({ key, help }) => [key, help])),
			});
			box.querySelector('.tabulator-tableholder').setAttribute('aria-label', 'threads');
		});
	}

	// From the first start to the last end of anything.
	span() {
		const all = [...this.report.targets, ...this.report.threads];

		this.begin = all.reduce((m, t) => Math.min(m, t.start), Infinity);
		this.length = all.reduce((m, t) => Math.max(m, t.end), 0) - this.begin || 1;
	}

	columns() {
		const { has } = this.report;
		const number = (field, title, formatter) => ({
			field,
			title,
			hozAlign: 'right',
			headerHozAlign: 'right',
			headerWordWrap: true,
			width: { pid: 84, tid: 84, calls: 140 }[field] ?? 96,
			sorter: 'number',
			formatter,
		});
		const plain = (cell) => element('span', {}, String(cell.getValue()));
		const calls = (cell) => element('span', {}, count(cell.getValue()));
		const figure = (text, exact) => (cell) =>
			element('span', { title: exact(cell.getValue()) }, text(cell.getValue()));
		const clock = figure(time, nanoseconds);

		return [
			{
				field: 'id',
				title: '',
				width: 44,
				headerSort: false,
				hozAlign: 'center',
				formatter: (cell) => this.checkbox(cell.getData()),
			},
			{
				field: 'label',
				title: 'thread',
				minWidth: 150,
				widthGrow: 1,
				headerSortStartingDir: 'asc',
				formatter: (cell) => this.nameCell(cell.getData()),
			},
			number('pid', 'pid', plain),
			number('tid', 'tid', plain),
			...(has.calls ? [number('calls', 'calls', calls)] : []),
			...(has.cpu ? [number('cpu', 'cpu', clock)] : []),
			...(has.wall ? [number('wall', 'wall', clock), number('wait', 'wait', clock)] : []),
			...(has.cpu ? [this.timeline()] : []),
			...this.optionals.map(({ key, title, text, exact }) => number(key, title, figure(text, exact))),
		];
	}

	timeline() {
		return {
			field: 'start',
			title: `timeline (${time(this.length)})`,
			minWidth: 200,
			widthGrow: 2,
			sorter: 'number',
			headerSortStartingDir: 'asc',
			formatter: (cell) => this.bar(cell.getData()),
		};
	}

	checkbox({ id, label }) {
		return element('input', {
			type: 'checkbox',
			checked: this.selected[id],
			'aria-label': `show thread ${label}`,
			change: (event) => {
				this.selected[id] = event.target.checked;
				this.onChange();
			},
		});
	}

	nameCell(row) {
		return element(
			'span',
			{ title: row.alive ? 'alive' : 'ended' },
			element('bdi', {}, row.label),
			row.alive ? '' : element('small', {}, ' ended'),
		);
	}

	// Its life, and within it how much of it was spent on a CPU: a share, not when.
	bar(row) {
		const whole = this.report.has.wall ? row.wall : row.end - row.start;
		const bar = element(
			'span',
			{
				class: 'life',
				role: 'img',
				'aria-label': `${percent(row.cpu, whole)} on the CPU`,
				title: `from ${time(row.start - this.begin)} to ${time(row.end - this.begin)}; ${percent(
					row.cpu,
					whole,
				)} on the CPU`,
			},
			element('span', { class: 'on-cpu' }),
		);

		bar.style.setProperty('--from', (row.start - this.begin) / this.length);
		bar.style.setProperty('--length', Math.max(0, row.end - row.start) / this.length);
		bar.style.setProperty('--cpu', whole > 0 ? Math.min(1, row.cpu / whole) : 0);
		return element('span', { class: 'axis' }, bar);
	}

	choose(which) {
		this.selected = this.report.threads.map((t) => which(this.selected[t.id], t));
		for (const row of this.table.getRows())
			row.reformat();
		this.onChange();
	}

	// "all 12", "3 of 12", for people.
	summary() {
		const all = this.report.threads.length;
		const n = this.selected.filter(Boolean).length;

		return n === all ? `all ${all}` : `${n} of ${all}`;
	}
}
