// SPDX-License-Identifier: BSD-2-Clause
// The live page: asks for the daemon's status and profile again and again, and shows them.

import { api } from './api.js';
import { Functions, load } from './data.js';
import { Moments } from './moments.js';
import { Page } from './page.js';
import { Recording } from './recording.js';
import { Targets } from './targets.js';

const $ = (id) => document.getElementById(id);
const PAUSE_AFTER = 3; // times as long as an answer took, at least, so that it does not burden the daemon

class Live {
	constructor() {
		this.functions = new Functions();
		this.page = null;
		this.daemon = null; // its pid
		this.problems = new Map();
		this.targets = new Targets(
			{
				table: $('targets-table'),
				filter: $('process-filter'),
				find: $('find'),
				list: $('process-list'),
				form: $('attach-form'),
				options: $('target-options'),
				forecast: $('forecast'),
				attach: $('attach'),
				note: $('attach-note'),
			},
			(forgotten) => this.changed(forgotten),
			(error) => this.problem('act', error),
		);
		this.moments = new Moments(
			{ from: $('from'), to: $('to'), mark: $('mark'), compare: $('compare') },
			() => this.draw(),
		);
		this.recording = new Recording(
			{ form: $('slow-form'), start: $('slow-start'), stop: $('slow-stop'), summary: $('slow-summary') },
			() => this.targets.pid,
			(error) => this.problem('slow', error),
		);
		this.listen();
	}

	listen() {
		const all = (path) => async () => {
			try {
				await api('POST', path, {});
				this.problem('act', null);
			} catch (error) {
				this.problem('act', error);
			}
			await this.changed();
		};

		$('start-all').addEventListener('click', all('/v1/start'));
		$('stop-all').addEventListener('click', all('/v1/stop'));
		$('pause').addEventListener('click', () => this.pause());
		$('attaching').addEventListener('toggle', () => {
			if ($('attaching').open && !this.targets.processes.length)
				this.targets.find();
		});
	}

	// Errors by what they are of; one that is over is gone.
	problem(what, error) {
		if (error)
			this.problems.set(what, error);
		else
			this.problems.delete(what);
		const lines = [...this.problems.values()].map((e) => (e.hint ? `${e.message}: ${e.hint}` : e.message));

		$('problem').hidden = !lines.length;
		$('problem').textContent = lines.join('\n');
	}

	connection(text, kind) {
		$('connection').textContent = text;
		$('connection').className = `badge ${kind}`;
	}

	get paused() {
		return $('pause').getAttribute('aria-pressed') === 'true';
	}

	pause() {
		$('pause').setAttribute('aria-pressed', String(!this.paused));
		$('pause').textContent = this.paused ? 'Resume' : 'Pause';
		if (this.paused)
			this.connection('paused', 'fair');
		else
			this.poll();
	}

	// Of other processes than before, or after their data were dropped: moments before it say nothing.
	async changed(forgotten) {
		if (forgotten || this.shownPid !== this.targets.pid)
			this.moments.clear();
		await this.poll(true);
	}

	// One at a time; the next one follows when this is done.
	poll(now) {
		clearTimeout(this.timer);
		this.polling = (this.polling ?? Promise.resolve()).then(() => (this.paused && !now ? null : this.ask()));
		return this.polling;
	}

	async ask() {
		const begin = performance.now();

		try {
			await this.status();
			await this.snapshot();
			this.problem('poll', null);
			if (!this.paused)
				this.connection('live', 'good');
		} catch (error) {
			this.problem('poll', error);
			this.connection(error.status === 0 ? 'ended' : error.status === 502 ? 'no daemon' : 'error', 'bad');
		}
		await this.slow();
		const took = performance.now() - begin;

		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.poll(), Math.max(Number($('interval').value), PAUSE_AFTER * took));
	}

	async slow() {
		try {
			await this.recording.poll();
		} catch (error) {
			this.problem('slow', error);
		}
	}

	async status() {
		const status = await api('GET', '/v1/status');

		if (this.daemon !== null && this.daemon !== status.pid)
			this.moments.clear();
		this.daemon = status.pid;
		if (!this.targets.options)
			await this.targets.start();
		this.targets.set(status);
	}

	async snapshot() {
		const { pid, targets } = this.targets;

		this.shownPid = pid;
		if (!targets.length) {
			$('views').hidden = true;
			return;
		}
		const json = await api('GET', `/v1/snapshot?format=page${pid ? `&pid=${pid}` : ''}`);

		this.moments.latest = load(json, this.functions);
		if (this.moments.following() || !this.page)
			await this.draw();
	}

	// One after the other: two at a time would show parts of both, or the earlier one.
	draw() {
		const drawn = (this.drawing ?? Promise.resolve()).then(() => this.drawShown());

		this.drawing = drawn.catch(() => {});
		return drawn;
	}

	async drawShown() {
		const report = this.moments.latest && this.moments.shown();

		if (!report)
			return;
		$('views').hidden = false;
		if (this.page) {
			await this.page.update(report);
		} else {
			this.page = new Page(report, { before: () => this.moments.before() });
			await this.page.show();
		}
		document.documentElement.dataset.updates = Number(document.documentElement.dataset.updates ?? 0) + 1;
	}
}

const live = new Live();

await live.poll();
document.documentElement.dataset.ready = Math.round(performance.now());
