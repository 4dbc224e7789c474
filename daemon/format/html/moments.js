// SPDX-License-Identifier: BSD-2-Clause
// Moments that the reader marks, and the interval between two of them that the page shows.

import { since } from './interval.js';
import { element } from './text.js';

const MOST = 8; // kept; the oldest is dropped

export class Moments {
	// parts: from, to, mark, compare; onChange() when another interval is chosen
	constructor(parts, onChange) {
		this.parts = parts;
		this.list = [];
		this.latest = null;
		parts.mark.addEventListener('click', () => this.mark());
		for (const input of [parts.from, parts.to, parts.compare])
			input.addEventListener('change', () => {
				this.offer();
				onChange();
			});
		this.onChange = onChange;
		this.offer();
	}

	// What is known of other processes, or of another daemon, says nothing about these.
	clear() {
		this.list = [];
		this.latest = null;
		this.parts.from.value = 'start';
		this.parts.to.value = 'now';
		this.offer();
	}

	mark() {
		const now = new Date();

		if (!this.latest)
			return;
		this.list.push({ key: String(now.getTime()), label: now.toLocaleTimeString('en-GB'), report: this.latest });
		this.list = this.list.slice(-MOST);
		this.offer();
		this.parts.from.value = this.list.at(-1).key;
		this.parts.to.value = 'now';
		this.offer();
		this.onChange();
	}

	find(key) {
		return this.list.find((m) => m.key === key);
	}

	// The moments to choose from: an interval ends after it began.
	offer() {
		const { from, to, compare } = this.parts;
		const fill = (select, first, list) => {
			const before = select.value;
			const options = list.map((m) => element('option', { value: m.key }, m.label));

			select.replaceChildren(...(select === from ? [first, ...options] : [...options.reverse(), first]));
			select.value = [...select.options].some((o) => o.value === before) ? before : first.value;
		};

		fill(from, element('option', { value: 'start' }, 'the start'), this.list);
		fill(
			to,
			element('option', { value: 'now' }, 'now'),
			this.list.filter((m) => from.value === 'start' || Number(m.key) > Number(from.value)),
		);
		compare.disabled = from.value === 'start';
		compare.checked &&= !compare.disabled;
	}

	following() {
		return this.parts.to.value === 'now';
	}

	// The report of the chosen interval.
	shown() {
		const end = this.find(this.parts.to.value)?.report ?? this.latest;
		const begin = this.find(this.parts.from.value)?.report;

		return begin && end !== begin ? since(end, begin) : end;
	}

	// What the interval is compared with: all before it.
	before() {
		return this.parts.compare.checked ? (this.find(this.parts.from.value)?.report ?? null) : null;
	}
}
