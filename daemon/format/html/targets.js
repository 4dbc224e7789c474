// SPDX-License-Identifier: BSD-2-Clause
// The live page's targets: what is traced and how, and the form that attaches to more. Texts are the
// daemon's.

import { api } from './api.js';
import { steady } from './steady.js';
import { count, element, percent, shortened, time } from './text.js';

const MOST = 50; // processes listed at a time
const FLAGS = new Set(['exact', 'builtins', 'follow_children', 'verify']);

export class Targets {
	// parts: table, filter, list, form, options, forecast, attach; onChange(): targets have changed;
	// onError(error)
	constructor(parts, onChange, onError) {
		this.parts = parts;
		this.onChange = onChange;
		this.onError = onError;
		this.targets = [];
		this.processes = [];
		this.pid = 0; // the process whose figures are shown; 0: all
		this.chosen = 0; // the process to attach to
		this.busy = new Set();
		parts.filter.addEventListener('input', () => this.listProcesses());
		parts.find.addEventListener('click', () => this.find());
		parts.forecast.addEventListener('click', () => this.forecast());
		parts.form.addEventListener('submit', (event) => {
			event.preventDefault();
			this.attach();
		});
	}

	async start() {
		const { options } = await api('GET', '/ui/options');

		this.options = options;
		this.parts.options.replaceChildren(...options.map((o) => this.field(o)));
	}

	// ---- what is attached ----

	set({ targets, attaching }) {
		this.targets = targets;
		this.attaching = attaching;
		if (this.pid && !targets.some((t) => t.pid === this.pid))
			this.pid = 0;
		steady(this.parts.table, () => this.draw());
	}

	draw() {
		const heads = ['figures', 'pid', 'command', 'state', 'mode', 'overhead', 'events/s', 'recorded', ''];

		if (!this.targets.length && !this.attaching.length) {
			this.parts.table.replaceChildren(
				element('p', { class: 'hint' }, 'No process is attached. Choose one below.'),
			);
			return;
		}
		this.parts.table.replaceChildren(
			element(
				'table',
				{ class: 'targets', 'aria-label': 'targets' },
				element('thead', {}, element('tr', {}, ...heads.map((h) => element('th', { scope: 'col' }, h)))),
				element(
					'tbody',
					{},
					...this.targets.map((t) => this.row(t)),
					...this.attaching
						.filter(({ pid }) => !this.targets.some((t) => t.pid === pid))
						.map(({ pid, step }) =>
							element('tr', {}, element('td'), element('td', {}, String(pid)), element('td', { colspan: 7 }, `${step} …`)),
						),
				),
			),
		);
	}

	row(t) {
		const press = (label, method, path, body, title) =>
			element(
				'button',
				{
					type: 'button',
					title,
					disabled: this.busy.has(t.pid),
					'aria-label': `${label} process ${t.pid}`,
					click: () => this.act(t.pid, method, path, body),
				},
				label,
			);
		const running = t.state === 'tracing';
		const inAll = t.overhead_in_all == null ? '' : `${percent(t.overhead_in_all, 1)} in all`;

		return element(
			'tr',
			{ 'data-pid': t.pid },
			element('td', {}, this.chooser(t)),
			element('td', {}, String(t.pid)),
			element('td', { class: 'command' }, element('bdi', { title: shortened(t.cmdline) }, shortened(t.cmdline, 120))),
			element('td', {}, this.state(t)),
			element('td', {}, t.windows ? `${t.mode}, ≤ ${t.windows.max_overhead_percent} %` : t.mode),
			element('td', { 'data-label': 'overhead', title: inAll || null }, running ? percent(t.overhead, 1) : inAll || '–'),
			element('td', { 'data-label': 'events/s' }, count(t.events_per_s)),
			element('td', { 'data-label': 'recorded' }, time(t.traced_ns)),
			element(
				'td',
				{ class: 'press' },
				running
					? press('Stop', 'POST', '/v1/stop', { pid: t.pid }, 'detach the probes, keep the data')
					: press('Start', 'POST', '/v1/start', { pid: t.pid }, 'attach the probes and record'),
				press('Clear', 'POST', '/v1/clear', { pid: t.pid }, 'counts and times back to zero'),
				press('Detach', 'DELETE', `/v1/targets/${t.pid}`, undefined, 'detach, and forget its data'),
			),
		);
	}

	state(t) {
		const why = t.warning || t.end_reason;

		return element('span', { title: why || null }, t.state, why ? element('small', {}, ` ${shortened(why, 100)}`) : '');
	}

	chooser(t) {
		return element('input', {
			type: 'checkbox',
			checked: this.pid === t.pid || this.targets.length === 1,
			disabled: this.targets.length === 1,
			'aria-label': `show only process ${t.pid}`,
			title: 'show only this process',
			change: (event) => {
				this.pid = event.target.checked ? t.pid : 0;
				this.onChange();
			},
		});
	}

	async act(pid, method, path, body) {
		this.busy.add(pid);
		steady(this.parts.table, () => this.draw());
		try {
			await api(method, path, body);
			this.onError(null);
		} catch (error) {
			this.onError(error);
		}
		this.busy.delete(pid);
		await this.onChange(path === '/v1/clear' || method === 'DELETE');
	}

	// ---- attaching ----

	async find() {
		this.parts.list.replaceChildren(element('p', { class: 'hint' }, 'Looking …'));
		try {
			this.processes = (await api('GET', '/ui/processes')).processes;
			this.onError(null);
		} catch (error) {
			this.onError(error);
		}
		this.listProcesses();
	}

	matching() {
		const text = this.parts.filter.value.trim().toLowerCase();

		return this.processes.filter(
			(p) =>
				!text ||
				String(p.pid) === text ||
				[p.command, p.unit, p.container?.id, p.container?.runtime, p.user].some((s) => s?.toLowerCase().includes(text)),
		);
	}

	listProcesses() {
		const found = this.matching();
		const typed = /^\d+$/.exec(this.parts.filter.value.trim())?.[0];

		if (typed && !this.processes.some((p) => String(p.pid) === typed))
			found.unshift({ pid: Number(typed), command: 'process that is not in the list', traceable: true });
		if (!found.some((p) => p.pid === this.chosen))
			this.chosen = found.length === 1 && found[0].traceable ? found[0].pid : 0;
		this.parts.list.replaceChildren(
			found.length
				? element('ul', { class: 'processes' }, ...found.slice(0, MOST).map((p) => this.process(p)))
				: element('p', { class: 'hint' }, this.processes.length ? 'No process matches.' : 'Find lists the Python processes of this machine.'),
			found.length > MOST ? element('p', { class: 'hint' }, `and ${found.length - MOST} more: type a part of the name`) : '',
		);
		this.ready();
	}

	process(p) {
		const attached = this.targets.some((t) => t.pid === p.pid);
		const radio = element('input', {
			type: 'radio',
			name: 'process',
			value: p.pid,
			checked: p.pid === this.chosen,
			disabled: !p.traceable || attached,
			change: () => {
				this.chosen = p.pid;
				this.ready();
			},
		});
		const facts = [
			p.version && `Python ${p.version}`,
			p.user,
			p.cpu_percent !== undefined && p.cpu_percent !== null && `${p.cpu_percent.toFixed(0)} % CPU`,
			p.unit,
			p.container && `${p.container.runtime} ${String(p.container.id).slice(0, 12)}`,
			attached && 'attached',
			!p.traceable && p.reason,
		].filter(Boolean);

		return element(
			'li',
			{},
			element('label', {}, radio, ` ${p.pid} `, element('bdi', { class: 'name' }, shortened(p.command ?? '', 120)), ' ', element('small', {}, shortened(facts.join(' · '), 200))),
		);
	}

	ready() {
		for (const button of [this.parts.attach, this.parts.forecast])
			button.disabled = !this.chosen;
	}

	field({ key, help, arg, choices, off }) {
		const title = help.replaceAll('\n', ' ');
		const label = key.replaceAll('_', ' ');

		if (choices.length)
			return element(
				'label',
				{ title },
				`${label} `,
				element('select', { name: key }, ...choices.map((c) => element('option', { value: c }, c))),
			);
		if (FLAGS.has(key))
			return element('label', { title }, element('input', { type: 'checkbox', name: key, checked: off }), ` ${label}`);
		return element('label', { title }, `${label} `, element('input', { name: key, placeholder: arg, size: 8, autocomplete: 'off' }));
	}

	request() {
		const body = { pid: this.chosen };

		for (const { key, off } of this.options) {
			const input = this.parts.form.elements[key];

			if (input.type === 'checkbox') {
				if (input.checked !== off)
					body[key] = input.checked;
			} else if (input.value.trim()) {
				body[key] = input.value.trim();
			}
		}
		return body;
	}

	async forecast() {
		const note = this.parts.note;

		note.textContent = 'Looking …';
		try {
			const { text, advice, children } = await api('POST', '/v1/forecast', this.request());

			note.textContent = [text, advice, children?.text].filter(Boolean).join(' · ');
			this.onError(null);
		} catch (error) {
			note.textContent = '';
			this.onError(error);
		}
	}

	async attach() {
		if (!this.chosen)
			return;
		this.parts.attach.disabled = true;
		this.parts.note.textContent = 'Attaching …';
		try {
			const { question } = await api('POST', '/v1/forecast', this.request());

			if (!question || window.confirm(question)) {
				await api('POST', '/v1/targets', this.request());
				this.chosen = 0;
			}
			this.onError(null);
		} catch (error) {
			this.onError(error);
		}
		this.parts.note.textContent = '';
		await this.onChange();
		this.listProcesses();
	}
}
