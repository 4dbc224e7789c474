// SPDX-License-Identifier: BSD-2-Clause
// The views of a report together: one clock, one search, one choice of threads, one function. Later
// reports of the same profile take its place, and what the reader looks at stays.

import { aggregate, threadKey } from './data.js';
import { Details } from './details.js';
import { Flame } from './flame.js';
import { Functions } from './functions.js';
import { measuresOf } from './measures.js';
import { FIGURES } from './reasons.js';
import { count, element, nanoseconds, percent, shortened, time, visible } from './text.js';
import { nextTheme } from './theme.js';
import { Threads } from './threads.js';
import { invertTree, mergeTree } from './trees.js';
import { Waits } from './waits.js';

const $ = (id) => document.getElementById(id);
const PRINTED_ROWS = 100;
const WARNING = /^[A-Z ]+$/;

const SERIOUS = /^(LOST|INCOMPLETE|NOT TRACED|WARNING)$/;

// What a report can show. A later one that cannot show the same needs other views.
function shapeOf({ has, columns, errors, durations, resumed, interval }) {
	return JSON.stringify([has, columns.map((c) => c.name), !errors, !durations, !resumed, Boolean(interval)]);
}

export class Page {
	// how.before(): a report of an earlier time, with which the flame graph is compared, or null.
	constructor(report, how = {}) {
		this.how = how;
		this.match = null;
		this.listen();
		this.build(report);
	}

	// Views of what this report has.
	build(report) {
		const before = this.measure?.key ?? report.provenance.clock;

		this.report = report;
		this.shape = shapeOf(report);
		this.measures = measuresOf(report);
		this.measure = this.measures.find((m) => m.key === before) ?? this.measures[0];
		this.details = new Details($('details'), report, (id) => this.go(id), (id) => this.toFlame(id));
		this.functions = new Functions($('functions-table'), $('columns'), report, (id) => this.go(id));
		this.flame ??= new Flame(
			{
				chart: $('chart'),
				path: $('path'),
				details: $('frame'),
				note: $('flame-note'),
				legend: $('flame-legend'),
				shades: $('shades'),
			},
			report,
			(id) => this.go(id),
		);
		this.flame.setReport(report);
		this.waits = new Waits(
			{
				view: $('waits'),
				table: $('waits-table'),
				legend: $('waits-legend'),
				note: $('waits-note'),
				held: $('held'),
				pairs: $('held-table'),
			},
			report,
			(id) => this.toFunction(id),
		);
		this.threads = new Threads($('threads-table'), report, () => this.rebuild());
		this.choices();
		$('by-reason').closest('label').hidden = !report.has.waits;
		$('by-reason').checked &&= report.has.waits && this.measure.key === 'wall';
		$('by-name').checked = this.threads.grouped;
		$('threads-note').hidden = !report.has.cpu;
		$('by-thread').closest('label').hidden = report.threads.length < 2;
	}

	async show() {
		this.heading();
		this.provenance();
		this.rebuild();
		// Where there are only counts, show them.
		if (!this.figures.total.tot_cpu && !this.figures.total.tot_wall && this.figures.total.ncalls)
			this.setMeasure('calls');
		await this.shown;
		if (this.figures.rows.length)
			this.functions.hideEmpty(this.figures.total);
		this.functions.sortBy(this.measure);
		if (this.match)
			this.search();
		this.followHash();
	}

	// A later report of the same profile, or another interval of it. Zoom, choices, search, and what is
	// scrolled to stay.
	async update(report) {
		if (shapeOf(report) !== this.shape)
			return this.replace(report);
		this.report = report;
		for (const view of [this.details, this.functions, this.flame, this.waits])
			view.setReport(report);
		await this.threads.setReport(report);
		if (this.match)
			this.match = this.matching();
		this.heading();
		this.provenance();
		this.rebuild();
		await this.shown;
		if (this.figures.rows.length)
			this.functions.hideEmpty(this.figures.total);
	}

	async replace(report) {
		const { id } = this.details;
		const { off, open, grouped } = this.threads;
		const table = this.functions.state();

		this.functions.close();
		this.threads.close();
		this.build(report);
		Object.assign(this.threads, { off, open });
		this.threads.take(report);
		$('by-name').checked = grouped;
		await this.threads.setGrouped(grouped);
		this.details.id = id;
		await this.show();
		this.functions.restore(table);
	}

	heading() {
		const command = this.report.targets.map((t) => t.command || `process ${t.pid}`);
		const title = command.length > 1 ? `${command.length} processes: ${command[0]}` : command[0] || '';

		document.title = `pyprofd: ${shortened(title, 80)}`;
		$('command').textContent = shortened(title, 300);
		$('command').title = shortened(title);
	}

	// Lines come from the writer, which knows what they mean; capitals are its way of warning. Estimates
	// are what was asked for: they have their errors beside them.
	provenance() {
		const { lines, provenance } = this.report;
		const serious = lines.filter(([label]) => SERIOUS.test(label));
		const notes = lines.filter(([label]) => WARNING.test(label) && !SERIOUS.test(label));
		const quality = $('quality');
		const estimated = provenance.estimated || provenance.targets.some((t) => t.estimated);
		const said = ([label, value]) =>
			element('p', {}, element('strong', {}, label), ' ', visible(value));

		quality.textContent = provenance.exact ? 'exact' : estimated ? 'estimates' : 'lower bounds';
		quality.className = `badge ${serious.length ? 'bad' : provenance.exact ? 'good' : estimated ? 'fair' : 'bad'}`;
		quality.title = lines
			.filter(([label]) => label === 'result')
			.map(([, value]) => visible(value))
			.join('\n');
		this.overhead();
		$('banner').hidden = !serious.length;
		$('banner').replaceChildren(...serious.map(said));
		$('notice').hidden = !notes.length;
		$('notice').replaceChildren(...notes.map(said));
		$('lines').replaceChildren(
			...lines.map(([label, value]) =>
				element(
					'tr',
					{ class: SERIOUS.test(label) ? 'warning' : null },
					element('th', { scope: 'row' }, visible(label)),
					element('td', {}, element('bdi', {}, visible(value))),
				),
			),
		);
	}

	// What observing took from all processes.
	overhead() {
		const { lines, provenance } = this.report;
		const sum = (key) => provenance.targets.reduce((n, t) => n + (t.overhead[key] ?? 0), 0);
		const own = sum('own_cpu_ns');

		$('overhead').hidden = !own;
		$('overhead').textContent = `overhead ${percent(sum('overhead_ns'), own)}`;
		$('overhead').title = lines
			.filter(([label]) => label === 'overhead')
			.map(([, value]) => visible(value))
			.join('\n');
	}

	// After another choice of threads: everything anew.
	rebuild() {
		const { selected } = this.threads;

		this.figures = aggregate(this.report, selected);
		this.figures.rows = this.figures.rows.filter((row) => !this.report.interval || row.ncalls || row.cum_cpu || row.cum_wall);
		this.shown = this.functions.set(this.figures);
		this.details.set(this.figures, this.measure);
		this.waits.set(this.figures, selected);
		this.drawFlame();
		this.summary();
		$('threads-chosen').textContent = this.threads.summary();
	}

	// The tree of a report as the flame graph is to show it.
	treeOf(report, selected) {
		const make = $('inverted').checked ? invertTree : mergeTree;
		const more = $('by-reason').checked ? FIGURES : [];

		return make(report, selected, $('by-thread').checked, this.measure.key, more);
	}

	// What the flame graph is compared with.
	before() {
		const report = this.how.before?.();
		const { off } = this.threads;

		return report
			? { tree: this.treeOf(report, report.threads.map((t) => !off.has(threadKey(t)))), threads: report.threads }
			: null;
	}

	drawFlame() {
		const { has } = this.report;

		$('flame').classList.toggle('without', !has.stacks);
		if (has.stacks)
			this.flame.setTree(this.treeOf(this.report, this.threads.selected), this.measure, {
				byReason: $('by-reason').checked,
				inverted: $('inverted').checked,
				before: this.before(),
			});
		else
			$('flame-note').textContent =
				'None: in mode count, calls are known by caller and callee, not by the whole stack. The functions below have theirs.';
		this.showMatched();
	}

	summary() {
		const { total, rows } = this.figures;
		const { has, columns, provenance } = this.report;
		const card = (title, value, exact) =>
			element(
				'div',
				{ title: exact },
				element('dt', {}, title),
				element('dd', {}, value),
			);
		const known = (n, text) => (n ? text(n) : '–');
		const traced = provenance.targets.reduce((n, t) => n + t.traced_ns, 0);

		$('summary').replaceChildren(
			...(has.cpu ? [card('CPU time in Python', known(total.tot_cpu, time), nanoseconds(total.tot_cpu))] : []),
			...(has.wall
				? [
						card('wall time in Python', known(total.tot_wall, time), nanoseconds(total.tot_wall)),
						card('waiting', percent(total.wait, total.tot_wall), nanoseconds(total.wait)),
					]
				: []),
			...(has.calls ? [card('calls', known(total.ncalls, count), `${count(total.pcalls)} primitive`)] : []),
			...this.measures
				.filter((m) => columns.some(({ name, group }) => name === m.key && group !== 'waits'))
				.map((m) => card(m.title, m.text(total[m.self]), `${m.help}: ${m.exact(total[m.self])}`)),
			card('functions', count(rows.length)),
			card('threads', this.threads.summary()),
			card('traced', time(traced)),
		);
	}

	// What the whole page is about, one of what this report has.
	choices() {
		const choice = ({ key, label, help }) => {
			const radio = element('input', { type: 'radio', name: 'measure', value: key, checked: key === this.measure.key });

			radio.addEventListener('change', () => {
				this.setMeasure(key);
				this.functions.sortBy(this.measure);
			});
			return element('label', { title: help }, radio, element('span', {}, label));
		};

		$('measures').replaceChildren($('measures').querySelector('legend'), ...this.measures.map(choice));
		$('measures').hidden = this.measures.length < 2;
	}

	listen() {
		$('search').addEventListener('input', () => this.search());
		$('search').form.addEventListener('submit', (event) => event.preventDefault());
		$('by-thread').addEventListener('change', () => this.drawFlame());
		$('by-reason').addEventListener('change', () => this.colourByReason($('by-reason').checked));
		$('inverted').addEventListener('change', () => this.drawFlame());
		$('by-name').addEventListener('change', () => this.threads.setGrouped($('by-name').checked));
		$('reset').addEventListener('click', () => this.flame.zoom(0));
		$('all').addEventListener('click', () => this.threads.choose(() => true));
		$('none').addEventListener('click', () => this.threads.choose(() => false));
		$('invert').addEventListener('click', () => this.threads.choose((on) => !on));
		$('theme').addEventListener('click', nextTheme);
		document.addEventListener('keydown', (event) => this.key(event));
		addEventListener('hashchange', () => this.followHash());
		addEventListener('beforeprint', () => this.print());
	}

	key(event) {
		const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);

		if (event.key === '/' && !(typing && event.target.type !== 'radio')) {
			event.preventDefault();
			$('search').focus();
			$('search').select();
		} else if (event.key === 'Escape' && event.target === $('search')) {
			$('search').value = '';
			this.search();
		}
	}

	// Reasons are parts of wall time: such a graph is as wide as that.
	colourByReason(on) {
		if (on && this.measure.key !== 'wall') {
			this.setMeasure('wall');
			this.functions.sortBy(this.measure);
		} else {
			this.drawFlame();
		}
	}

	setMeasure(key) {
		$('by-reason').checked &&= key === 'wall';
		this.measure = this.measures.find((m) => m.key === key);
		document.querySelector(`input[name=measure][value=${key}]`).checked = true;
		this.details.set(this.figures, this.measure);
		this.drawFlame();
	}

	// A regular expression over "name file:line"; what is none is searched as it stands.
	matching() {
		const text = $('search').value;
		let test = null;

		this.literal = false;
		if (text)
			try {
				const re = new RegExp(text, /[A-Z]/.test(text) ? 'u' : 'iu');
				test = (s) => re.test(s);
			} catch {
				this.literal = true;
				test = (s) => s.includes(text);
			}
		return test && this.report.functions.map((f) => test(`${f.label} ${f.where}`));
	}

	search() {
		this.match = this.matching();
		this.functions.filter(this.match);
		this.waits.filter(this.match);
		this.showMatched();
	}

	showMatched() {
		const note = $('search-note');

		if (!this.match) {
			note.textContent = '';
			this.flame.search(null);
			return;
		}
		const rows = this.figures.rows.filter((r) => this.match[r.id]);
		const share = this.report.has.stacks
			? this.flame.search(this.match)
			: { matched: rows.reduce((n, r) => n + r.ncalls, 0), of: this.figures.total.ncalls };
		note.textContent = `${count(rows.length)} functions, ${percent(share.matched, share.of)}${
			this.literal ? '; no regular expression, searched as it stands' : ''
		}`;
	}

	// By way of the address, so that the browser's Back leads back.
	go(id) {
		const hash = `#f${id}`;

		if (location.hash === hash)
			this.followHash();
		else
			location.hash = hash;
	}

	followHash() {
		const id = /^#f(\d+)$/.exec(location.hash)?.[1];

		if (id === undefined || !this.report.functions[id])
			return;
		this.details.show(Number(id));
		this.functions.select(Number(id), true);
	}

	// From further below, where its figures may be out of view.
	toFunction(id) {
		this.go(id);
		this.details.show(id);
		$('details').scrollIntoView({ block: 'nearest' });
	}

	toFlame(id) {
		if (this.flame.zoomToFunction(id)) {
			$('chart').scrollIntoView({ block: 'nearest' });
			$('chart').focus({ preventScroll: true });
		}
	}

	// The table on screen holds only what is in view.
	print() {
		const figures = this.functions.visibleFigures();
		const cell = (row, { field, text }) =>
			field === 'ncalls' && row.ncalls !== row.pcalls
				? `${count(row.ncalls)}/${count(row.pcalls)}`
				: row[field] === null
					? '–'
					: text(row[field]);
		const line = (row) => [
			...figures.map((f) => cell(row, f)),
			shortened(`${row.label} (${row.where})`, 120),
		];
		const tr = (tag, texts) => element('tr', {}, ...texts.map((t) => element(tag, {}, t)));

		$('printed-head').replaceChildren(tr('th', [...figures.map((f) => f.title), 'function']));
		$('printed').replaceChildren(
			...this.functions
				.shown()
				.slice(0, PRINTED_ROWS)
				.map((r) => tr('td', line(r.getData()))),
		);
	}
}
