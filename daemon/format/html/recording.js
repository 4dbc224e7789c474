// SPDX-License-Identifier: BSD-2-Clause
// The live page's recording of slow calls: started and ended here, and asked for its calls when there
// are new ones.

import { api } from './api.js';
import { SlowCalls, slowParts, summary } from './slow.js';

export class Recording {
	// parts: form, start, stop, summary; onError(error)
	constructor(parts, pidOf, onError) {
		this.parts = parts;
		this.pidOf = pidOf;
		this.onError = onError;
		this.view = new SlowCalls(slowParts());
		this.id = null;
		parts.form.addEventListener('submit', (event) => {
			event.preventDefault();
			this.start();
		});
		parts.stop.addEventListener('click', () => this.stop());
	}

	request() {
		const value = (id) => document.getElementById(id).value.trim();
		const body = { clock: value('slow-clock') };

		if (value('slow-match'))
			body.match = value('slow-match');
		if (value('slow-over'))
			body.over = value('slow-over');
		if (value('slow-n'))
			body.n = Number(value('slow-n'));
		if (this.pidOf())
			body.pid = this.pidOf();
		return body;
	}

	running(on) {
		this.parts.start.disabled = on;
		this.parts.stop.disabled = !on;
	}

	async start() {
		try {
			const { id } = await api('POST', '/v1/slow', this.request());

			this.id = id;
			this.seen = '';
			this.view.set({ calls: [], functions: [] });
			this.running(true);
			this.onError(null);
			await this.poll();
		} catch (error) {
			this.onError(error);
		}
	}

	// Its calls stay on the page.
	async stop() {
		const { id } = this;

		try {
			await this.fetch();
			this.id = null;
			await api('DELETE', `/v1/slow/${id}`);
			this.onError(null);
		} catch (error) {
			this.onError(error);
		}
		this.id = null;
		this.running(false);
	}

	async fetch() {
		const result = await api('GET', `/v1/slow/${this.id}?steps=1`);

		this.parts.summary.textContent = summary(result);
		this.view.set(result);
	}

	// The daemon drops a recording that nobody asks about.
	async poll() {
		if (this.id === null)
			return;
		try {
			const counters = await api('GET', `/v1/slow/${this.id}?trees=0`);
			const seen = `${counters.seen} ${counters.over}`;

			this.parts.summary.textContent = summary(counters);
			if (seen !== this.seen)
				await this.fetch();
			this.seen = seen;
		} catch (error) {
			if (error.status === 404) {
				this.id = null;
				this.running(false);
			}
			throw error;
		}
	}
}
