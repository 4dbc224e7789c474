// SPDX-License-Identifier: BSD-2-Clause
// Puts the page together: one report, one clock, one search, one choice of threads, one function.

import { aggregate, load, mergeTree } from './data.js';
import { Details } from './details.js';
import { Flame } from './flame.js';
import { Functions } from './functions.js';
import { count, element, percent, shortened, time, visible } from './text.js';
import { Threads } from './threads.js';

const $ = (id) => document.getElementById(id);
const PRINTED_ROWS = 100;

class Page {
	constructor(json) {
		this.report = load(json);
		this.clock = json.provenance.clock;
		this.match = null;
		this.details = new Details($('details'), this.report, (id) => this.go(id), (id) => this.toFlame(id));
		this.functions = new Functions($('functions-table'), $('columns'), this.report, (id) => this.go(id));
		this.flame = new Flame(
			{ chart: $('chart'), path: $('path'), details: $('frame'), note: $('flame-note') },
			this.report,
			(id) => this.go(id),
		);
		this.threads = new Threads($('threads-table'), this.report, () => this.rebuild());
		this.controls();
	}

	async show() {
		this.heading();
		this.provenance();
		this.rebuild();
		// Where there are only counts, show them.
		if (!this.figures.total.tot_cpu && !this.figures.total.tot_wall && this.figures.total.ncalls)
			this.setClock('calls');
		await this.shown;
		if (this.figures.rows.length)
			this.functions.hideEmpty(this.figures.total);
		this.sortByClock();
		this.followHash();
	}

	heading() {
		const command = this.report.targets.map((t) => t.command || `process ${t.pid}`);
		const title = command.length > 1 ? `${command.length} processes: ${command[0]}` : command[0] || '';

		document.title = `pyprofd: ${shortened(title, 80)}`;
		$('command').textContent = shortened(title, 300);
		$('command').title = shortened(title);
	}

	// Lines come from the writer, which knows what they mean; capitals are its way of warning.
	provenance() {
		const { lines, provenance } = this.report;
		const warnings = lines.filter(([label]) => /^[A-Z]+$/.test(label));
		const quality = $('quality');
		const estimated = provenance.estimated || provenance.targets.some((t) => t.estimated);

		quality.textContent = provenance.exact ? 'exact' : estimated ? 'estimates' : 'lower bounds';
		quality.className = `badge ${provenance.exact && !warnings.length ? 'good' : 'bad'}`;
		quality.title = lines
			.filter(([label]) => label === 'result')
			.map(([, value]) => visible(value))
			.join('\n');
		$('banner').hidden = !warnings.length;
		$('banner').replaceChildren(
			...warnings.map(([label, value]) =>
				element('p', {}, element('strong', {}, label), ' ', visible(value)),
			),
		);
		$('lines').replaceChildren(
			...lines.map(([label, value]) =>
				element(
					'tr',
					{ class: /^[A-Z]+$/.test(label) ? 'warning' : null },
					element('th', { scope: 'row' }, visible(label)),
					element('td', {}, element('bdi', {}, visible(value))),
				),
			),
		);
	}

	// After another choice of threads: everything anew.
	rebuild() {
		const { selected } = this.threads;

		this.figures = aggregate(this.report, selected);
		this.shown = this.functions.set(this.figures);
		this.details.set(this.figures, this.clock);
		this.drawFlame();
		this.summary();
		$('threads-chosen').textContent = this.threads.summary();
	}

	drawFlame() {
		const { selected } = this.threads;

		this.flame.setTree(mergeTree(this.report, selected, $('by-thread').checked), this.clock);
		this.showMatched();
	}

	summary() {
		const { total, rows } = this.figures;
		const card = (title, value, exact) =>
			element(
				'div',
				{ title: exact },
				element('dt', {}, title),
				element('dd', {}, value),
			);

		$('summary').replaceChildren(
			card('CPU time in Python', total.tot_cpu ? time(total.tot_cpu) : '–', `${count(total.tot_cpu)} ns`),
			card('wall time in Python', total.tot_wall ? time(total.tot_wall) : '–', `${count(total.tot_wall)} ns`),
			card('waiting', percent(total.wait, total.tot_wall), `${count(total.wait)} ns`),
			card('calls', total.ncalls ? count(total.ncalls) : '–', `${count(total.pcalls)} primitive`),
			card('functions', count(rows.length)),
			card('threads', this.threads.summary()),
			card('traced', time(this.report.provenance.targets.reduce((n, t) => n + t.traced_ns, 0))),
		);
	}

	controls() {
		$('search').addEventListener('input', () => this.search());
		for (const radio of document.querySelectorAll('input[name=clock]')) {
			radio.checked = radio.value === this.clock;
			radio.addEventListener('change', () => {
				this.setClock(radio.value);
				this.sortByClock();
			});
		}
		$('by-thread').addEventListener('change', () => this.drawFlame());
		$('by-thread').closest('label').hidden = this.report.threads.length < 2;
		$('reset').addEventListener('click', () => this.flame.zoom(0));
		$('all').addEventListener('click', () => this.threads.choose(() => true));
		$('none').addEventListener('click', () => this.threads.choose(() => false));
		$('invert').addEventListener('click', () => this.threads.choose((on) => !on));
		$('theme').addEventListener('click', () => this.nextTheme());
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

	setClock(clock) {
		this.clock = clock;
		document.querySelector(`input[name=clock][value=${clock}]`).checked = true;
		this.details.set(this.figures, clock);
		this.drawFlame();
	}

	sortByClock() {
		this.functions.sort(this.clock === 'calls' ? 'ncalls' : `tot_${this.clock}`);
	}

	// A regular expression over "name file:line"; what is none is searched as it stands.
	search() {
		const text = $('search').value;
		let test = null;
		let literal = false;

		if (text)
			try {
				const re = new RegExp(text, /[A-Z]/.test(text) ? 'u' : 'iu');
				test = (s) => re.test(s);
			} catch {
				literal = true;
				test = (s) => s.includes(text);
			}
		this.match = test && this.report.functions.map((f) => test(`${f.label} ${f.where}`));
		this.literal = literal;
		this.functions.filter(this.match);
		this.showMatched();
	}

	showMatched() {
		const share = this.flame.search(this.match);
		const note = $('search-note');

		if (!share) {
			note.textContent = '';
			return;
		}
		const n = this.figures.rows.filter((r) => this.match[r.id]).length;
		note.textContent = `${count(n)} functions, ${percent(share.matched, share.of)}${
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

	toFlame(id) {
		if (this.flame.zoomToFunction(id)) {
			$('chart').scrollIntoView({ block: 'nearest' });
			$('chart').focus({ preventScroll: true });
		}
	}

	nextTheme() {
		const root = document.documentElement;
		const dark = root.dataset.theme
			? root.dataset.theme === 'dark'
			: matchMedia('(prefers-color-scheme: dark)').matches;

		root.dataset.theme = dark ? 'light' : 'dark';
	}

	// The table on screen holds only what is in view.
	print() {
		const rows = this.functions.shown().slice(0, PRINTED_ROWS);
		const cells = (row) => [
			row.ncalls === row.pcalls ? count(row.ncalls) : `${count(row.ncalls)}/${count(row.pcalls)}`,
			time(row.tot_cpu),
			time(row.cum_cpu),
			time(row.tot_wall),
			time(row.cum_wall),
			shortened(`${row.label} (${row.where})`, 120),
		];

		$('printed').replaceChildren(
			...rows.map((r) =>
				element('tr', {}, ...cells(r.getData()).map((text) => element('td', {}, text))),
			),
		);
	}
}

const page = new Page(JSON.parse($('data').textContent));
$('data').remove();
await page.show();
document.documentElement.dataset.ready = Math.round(performance.now());
