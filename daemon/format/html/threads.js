// SPDX-License-Identifier: BSD-2-Clause
// Threads: what each used, when it was there, and which of them the rest of the page is about.

import { DataTreeModule, Tabulator } from 'tabulator-tables';
import { threadKey } from './data.js';
import { COMMON, dressHeaders } from './functions.js';
import { columnsOf } from './measures.js';
import { count, element, nanoseconds, percent, shortened, time } from './text.js';

Tabulator.registerModule([DataTreeModule]);

const MANY = 8; // more threads than this are grouped at first
const HELP = {
	calls: 'calls of Python functions',
	cpu: 'CPU time while traced, outside Python included',
	wall: 'wall time while traced',
	wait: 'wall less cpu',
	start: 'first seen to last seen; the filled part is the share of CPU time',
};

// Threads of a pool differ by numbers.
function groupName(name) {
	return name.replace(/\d+/g, '#');
}

function sum(rows, key) {
	return rows.reduce((n, row) => n + row[key], 0);
}

export class Threads {
	// onChange() when other threads are chosen: see selected.
	constructor(box, report, onChange) {
		this.box = box;
		this.onChange = onChange;
		this.grouped = report.threads.length > MANY;
		this.open = new Set(); // groups that show their threads
		this.off = new Set(); // threads that are not chosen
		this.take(report);
		this.table = new Tabulator(box, {
			...COMMON,
			data: this.rows(),
			index: 'id',
			maxHeight: '60vh',
			columns: this.columns(),
			initialSort: [{ column: ['wall', 'cpu', 'calls'].find((key) => report.has[key]), dir: 'desc' }],
			placeholder: 'No threads.',
			dataTree: true,
			dataTreeElementColumn: 'label',
			dataTreeBranchElement: false,
			dataTreeChildIndent: 22,
			dataTreeExpandElement: '<button type="button" class="fold" aria-label="show its threads">▸</button>',
			dataTreeCollapseElement: '<button type="button" class="fold" aria-label="hide its threads">▾</button>',
			dataTreeStartExpanded: (row) => this.open.has(row.getData().id),
		});
		this.table.on('dataTreeRowExpanded', (row) => this.open.add(row.getData().id));
		this.table.on('dataTreeRowCollapsed', (row) => this.open.delete(row.getData().id));
		this.ready = new Promise((resolve) => this.table.on('tableBuilt', resolve));
		this.ready.then(() => {
			dressHeaders(this.table, {
				...HELP,
				...Object.fromEntries(this.optionals.map(({ key, help }) => [key, help])),
			});
			box.querySelector('.tabulator-tableholder').setAttribute('aria-label', 'threads');
		});
	}

	close() {
		this.table.destroy();
	}

	take(report) {
		this.report = report;
		this.optionals = columnsOf(report);
		this.selected = report.threads.map((t) => !this.off.has(threadKey(t)));
		this.span();
	}

	// A later report of the same profile: those that were not chosen are not chosen now.
	setReport(report) {
		this.take(report);
		return this.refresh();
	}

	setGrouped(grouped) {
		this.grouped = grouped;
		return this.refresh();
	}

	async refresh() {
		await this.ready;
		const holder = this.box.querySelector('.tabulator-tableholder');
		const focused = document.activeElement?.closest?.('#threads-table') && document.activeElement.dataset.of;

		await this.table.replaceData(this.rows());
		if (focused)
			holder.querySelector(`[data-of="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
	}

	rows() {
		const threads = this.report.threads.map((t) => ({
			...t,
			wait: Math.max(0, t.wall - t.cpu),
			label: `${shortened(t.name, 200) || 'thread'}`,
		}));
		const groups = new Map();

		this.members = new Map(threads.map((t) => [String(t.id), [t.id]]));
		if (!this.grouped)
			return threads;
		for (const t of threads) {
			const key = groupName(t.label);

			groups.set(key, [...(groups.get(key) ?? []), t]);
		}
		return [...groups].map(([key, list]) => (list.length > 1 ? this.group(key, list) : list[0]));
	}

	group(key, list) {
		const [first] = list;
		const id = `group ${key}`;
		const same = (field) => (list.every((t) => t[field] === first[field]) ? first[field] : null);

		this.members.set(id, list.map((t) => t.id));
		return {
			...first,
			...Object.fromEntries(['calls', 'cpu', 'wall', 'wait', ...this.optionals.map((o) => o.key)].map((k) => [k, sum(list, k)])),
			id,
			label: same('label') ?? key,
			pid: same('pid'),
			tid: null,
			alive: list.some((t) => t.alive),
			start: list.reduce((m, t) => Math.min(m, t.start), Infinity),
			end: list.reduce((m, t) => Math.max(m, t.end), 0),
			_children: list,
		};
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
		const plain = (cell) => element('span', {}, String(cell.getValue() ?? ''));
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
				minWidth: 190,
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

	checkbox(row) {
		const members = this.members.get(String(row.id));
		const n = members.filter((id) => this.selected[id]).length;
		const box = element('input', {
			type: 'checkbox',
			checked: n === members.length,
			'data-of': row.id,
			'aria-label': row._children ? `show ${members.length} threads ${row.label}` : `show thread ${row.label}`,
			change: (event) => {
				this.mark(members, event.target.checked);
				this.changed();
			},
		});

		box.indeterminate = n > 0 && n < members.length;
		return box;
	}

	mark(ids, on) {
		for (const id of ids) {
			const key = threadKey(this.report.threads[id]);

			this.selected[id] = on;
			if (on)
				this.off.delete(key);
			else
				this.off.add(key);
		}
	}

	// Boxes show what is chosen, those of groups as well.
	changed() {
		for (const box of this.box.querySelectorAll('input[data-of]')) {
			const members = this.members.get(box.dataset.of);
			const n = members.filter((id) => this.selected[id]).length;

			box.checked = n === members.length;
			box.indeterminate = n > 0 && n < members.length;
		}
		this.onChange();
	}

	nameCell(row) {
		const n = row._children?.length;

		return element(
			'span',
			{ title: n ? `${n} threads with such a name` : row.alive ? 'alive' : 'ended' },
			element('bdi', {}, row.label),
			n ? element('small', {}, ` ${n} threads`) : '',
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
		this.selected.forEach((on, id) => this.mark([id], which(on)));
		this.changed();
	}

	// "all 12", "3 of 12", for people.
	summary() {
		const all = this.report.threads.length;
		const n = this.selected.filter(Boolean).length;

		return n === all ? `all ${all}` : `${n} of ${all}`;
	}
}
