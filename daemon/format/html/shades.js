// SPDX-License-Identifier: BSD-2-Clause
// Colours by reason for the frames of the flame graph. A frame is as wide as its cumulative time: the
// part of it that frames below cover stays plain, the rest is coloured in proportion to its reasons.

import { colourOf, totalOf } from './reasons.js';

const STEPS = 400; // a gradient's precision: frames that look equal share one
const SVG = 'http://www.w3.org/2000/svg';
const PLAIN = 'var(--reason-callees)';

function stop(offset, colour) {
	const e = document.createElementNS(SVG, 'stop');

	e.setAttribute('offset', offset / STEPS);
	e.style.stopColor = colour;
	return e;
}

export class Shades {
	// box: an SVG element that holds gradients
	constructor(box) {
		this.box = box;
		this.known = new Map();
	}

	clear() {
		this.known.clear();
		this.box.replaceChildren();
	}

	// The colour of a frame that shows these parts, which are this share of it.
	of(parts, share) {
		const runs = this.runs(parts, share);
		const key = runs.map(({ to, colour }) => `${to} ${colour}`).join();

		if (runs.length === 1)
			return runs[0].colour;
		if (!this.known.has(key))
			this.known.set(key, this.add(runs));
		return `url(#${this.known.get(key)})`;
	}

	// Where which colour ends.
	runs(parts, share) {
		const total = totalOf(parts);
		const ret = [];
		let at = total > 0 ? 1 - Math.min(1, share) : 1;

		const append = (end, colour) => {
			const to = Math.round(end * STEPS);

			if (to > (ret.at(-1)?.to ?? 0))
				ret.push({ to, colour });
		};
		append(at, PLAIN);
		for (const part of parts)
			append((at += (part.ns / total) * Math.min(1, share)), colourOf(part.key));
		return ret;
	}

	add(runs) {
		const gradient = document.createElementNS(SVG, 'linearGradient');
		let from = 0;

		gradient.id = `shade-${this.known.size}`;
		for (const { to, colour } of runs) {
			gradient.append(stop(from, colour), stop(to, colour));
			from = to;
		}
		this.box.append(gradient);
		return gradient.id;
	}
}
