// SPDX-License-Identifier: BSD-2-Clause
// The colours of the flame graph's frames, and their legend: one per file, and one for each kind of
// code that is in no file; or by how much a share has changed.

import { element, percent, shortened, tail } from './text.js';

const MOST_FILES = 8;
const FULL = 0.1; // a change of this share has the full colour
const STEPS = 10;
const KINDS = {
	plain: ['var(--frame-plain)', 'not Python'],
	gc: ['var(--frame-gc)', 'garbage collector'],
	native: ['var(--frame-native)', 'C functions'],
};

function hue(text) {
	let h = 0;

	for (let i = 0; i < text.length; i++)
		h = (h * 31 + text.charCodeAt(i)) >>> 0;
	return h % 360;
}

function kindOf(f) {
	if (!f || (f.pseudo && !f.gc))
		return 'plain';
	return f.gc ? 'gc' : f.native ? 'native' : null;
}

function item(colour, name, share, title) {
	const swatch = element('span', { class: 'swatch', 'aria-hidden': 'true' });

	swatch.style.setProperty('--reason', colour);
	return element('li', { title }, swatch, element('bdi', {}, name), share ? element('small', {}, ` ${share}`) : '');
}

export class Palette {
	constructor() {
		this.colours = new Map();
	}

	// f: a function; null: a thread, or all
	of(f) {
		const kind = kindOf(f);

		if (kind)
			return KINDS[kind][0];
		if (!this.colours.has(f.file))
			this.colours.set(f.file, `oklch(var(--frame-light) var(--frame-chroma) ${hue(f.file)})`);
		return this.colours.get(f.file);
	}

	ofChange(change) {
		if (change === undefined)
			return KINDS.plain[0];
		const step = Math.round(Math.min(1, Math.abs(change) / FULL) * STEPS);

		return `color-mix(in oklch, var(--${change > 0 ? 'more' : 'less'}) ${(100 * step) / STEPS}%, var(--frame-plain))`;
	}

	// frames: functions (f) and what each shows itself (own), of `whole`
	legend(frames, whole) {
		const sums = new Map();

		for (const { f, own } of frames) {
			const kind = kindOf(f);
			const key = kind ?? f.file;
			const known = sums.get(key) ?? { kind, f, own: 0 };

			sums.set(key, { ...known, own: known.own + Math.max(0, own) });
		}
		const shown = [...sums.values()].filter(({ own }) => own > 0).sort((a, b) => b.own - a.own);

		return [
			...shown.slice(0, MOST_FILES).map(({ kind, f, own }) =>
				kind
					? item(KINDS[kind][0], KINDS[kind][1], percent(own, whole))
					: item(this.of(f), shortened(tail(f.file), 40), percent(own, whole), shortened(f.file)),
			),
			...(shown.length > MOST_FILES ? [element('li', {}, `and ${shown.length - MOST_FILES} more files`)] : []),
		];
	}

	changes() {
		return [-1, -0.5, 0, 0.5, 1].map((part) =>
			item(
				this.ofChange(part * FULL),
				part ? `${part < 0 ? '−' : '+'}${percent(Math.abs(part) * FULL, 1)}${Math.abs(part) === 1 ? ' or more' : ''}` : 'no change',
				'',
				'points of share, compared with what was before',
			),
		);
	}
}
