// SPDX-License-Identifier: BSD-2-Clause
// One call, from left to right as it happened: a frame is as wide as it took. Where the order is not
// known, children stand one after the other.

import { Palette } from './palette.js';
import { element, percent, shortened, time } from './text.js';

const ROW = 20;
const NARROWEST = 0.7; // pixels
const MOST_FRAMES = 3000;
const MOST_LEVELS = 250;

// Frames from the steps of a call: [ns, function] pushes one, [ns] pops one.
function fromSteps({ steps, wall_ns }) {
	const frames = [];
	const open = [];
	let now = 0;

	for (const [ns, func] of steps) {
		now = Math.max(now, Math.min(ns, wall_ns));
		if (func !== undefined) {
			frames.push({ func, parent: open.at(-1) ?? -1, depth: open.length, from: now, to: wall_ns });
			open.push(frames.length - 1);
		} else if (open.length) {
			frames[open.pop()].to = now;
		}
	}
	return frames;
}

// Frames from the tree of a call, whose times are own times.
function fromNodes({ nodes }) {
	const all = nodes.map((n) => n.wall_ns);
	const used = nodes.map(() => 0);
	const frames = [];

	for (let i = nodes.length - 1; i > 0; i--)
		if (nodes[i].parent >= 0 && nodes[i].parent < i)
			all[nodes[i].parent] += all[i];
	nodes.forEach((n, i) => {
		const up = i > 0 && n.parent >= 0 && n.parent < i ? frames[n.parent] : null;
		const from = up ? up.from + used[n.parent] : 0;

		if (up)
			used[n.parent] += all[i];
		frames.push({ func: n.function, parent: up ? n.parent : -1, depth: up ? up.depth + 1 : 0, from, to: from + all[i] });
	});
	return frames;
}

export class TimeOrder {
	// parts: chart, details, note, legend
	constructor(parts) {
		this.parts = parts;
		this.palette = new Palette();
		this.frames = [];
		parts.chart.addEventListener('click', (event) => {
			const at = event.target.closest?.('.slot')?.dataset.frame;

			if (at !== undefined)
				this.zoom(Number(at));
		});
		parts.chart.addEventListener('mouseover', (event) => {
			const at = event.target.closest?.('.slot')?.dataset.frame;

			if (at !== undefined)
				this.describe(Number(at));
		});
		parts.chart.addEventListener('mouseleave', () => this.describe(this.current));
		parts.chart.addEventListener('keydown', (event) => this.key(event));
		new ResizeObserver(() => this.draw()).observe(parts.chart);
	}

	// call: with steps, or with nodes only; functions: those of the recording
	set(call, functions) {
		const steps = call.steps?.length && !call.steps_missing;

		this.functions = functions;
		this.frames = steps ? fromSteps(call) : fromNodes(call);
		this.ordered = Boolean(steps);
		this.own = this.frames.map((f) => f.to - f.from);
		for (const f of this.frames)
			if (f.parent >= 0)
				this.own[f.parent] -= f.to - f.from;
		this.current = this.focus = 0;
		this.draw();
	}

	clear() {
		this.frames = [];
		this.parts.chart.replaceChildren();
		this.parts.details.textContent = this.parts.note.textContent = '';
		this.parts.legend.replaceChildren();
	}

	functionOf(i) {
		const f = this.functions[this.frames[i].func];

		return { name: f?.name ?? '<unknown>', file: f?.file ?? '', line: f?.line ?? 0, native: f?.file === '~' };
	}

	drawn() {
		const { from, to } = this.frames[this.focus];
		const scale = (this.parts.chart.clientWidth || 300) / Math.max(1, to - from);
		const ret = [];

		for (let i = 0; i < this.frames.length && ret.length < MOST_FRAMES; i++) {
			const f = this.frames[i];
			const left = Math.max(f.from, from);
			const right = Math.min(f.to, to);

			if (f.depth < MOST_LEVELS && right > left && (right - left) * scale >= NARROWEST)
				ret.push({ i, left: (left - from) * scale, width: (right - left) * scale });
		}
		return ret;
	}

	draw() {
		const { chart } = this.parts;

		if (!this.frames.length)
			return;
		const shown = this.drawn();
		const levels = shown.reduce((n, { i }) => Math.max(n, this.frames[i].depth), 0) + 1;

		chart.style.setProperty('--levels', levels);
		chart.replaceChildren(...shown.map((s) => this.slot(s)));
		this.parts.note.textContent = `${shown.length} of ${this.frames.length} frames drawn.${
			this.ordered ? '' : ' The order in time is not known: callees stand one after the other.'
		}`;
		this.parts.legend.replaceChildren(
			...this.palette.legend(
				shown.map(({ i }) => ({ f: this.functionOf(i), own: this.own[i] })),
				this.frames[this.focus].to - this.frames[this.focus].from,
			),
		);
		this.mark();
		this.describe(this.current);
	}

	slot({ i, left, width }) {
		const f = this.functionOf(i);
		const slot = element(
			'div',
			{ class: 'slot', role: 'treeitem', id: `slot-${i}`, 'aria-level': this.frames[i].depth + 1, 'aria-label': this.text(i), 'data-frame': i },
			width > 24 ? shortened(f.name, 100) : '',
		);

		slot.style.left = `${left}px`;
		slot.style.width = `${Math.max(1, width - 0.5)}px`;
		slot.style.top = `${this.frames[i].depth * ROW}px`;
		slot.style.background = this.palette.of(f);
		return slot;
	}

	text(i) {
		const f = this.functionOf(i);
		const { from, to } = this.frames[i];
		const whole = this.frames[0].to - this.frames[0].from;
		const at = this.ordered ? ` · from ${time(from)} to ${time(to)}` : '';

		return `${shortened(f.name, 200)} · ${time(to - from)}, ${percent(to - from, whole)}${at} · ${shortened(`${f.file}:${f.line}`, 200)}`;
	}

	describe(i) {
		this.parts.details.textContent = this.frames[i] ? this.text(i) : '';
	}

	mark() {
		this.parts.chart.querySelector('.current')?.classList.remove('current');
		const slot = document.getElementById(`slot-${this.current}`);

		slot?.classList.add('current');
		if (slot)
			this.parts.chart.setAttribute('aria-activedescendant', slot.id);
	}

	zoom(i) {
		this.focus = this.current = i;
		this.draw();
	}

	neighbour(key) {
		const { parent, depth } = this.frames[this.current];
		const shown = this.drawn().map(({ i }) => i);
		const level = shown.filter((i) => this.frames[i].depth === depth);

		switch (key) {
			case 'ArrowDown':
				return shown.find((i) => this.frames[i].parent === this.current);
			case 'ArrowUp':
				return parent >= 0 ? parent : undefined;
			case 'ArrowLeft':
				return level[level.indexOf(this.current) - 1];
			case 'ArrowRight':
				return level[level.indexOf(this.current) + 1];
			default:
				return undefined;
		}
	}

	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || !this.frames.length)
			return;
		if (event.key.startsWith('Arrow')) {
			const to = this.neighbour(event.key);

			if (to !== undefined) {
				this.current = to;
				this.mark();
				this.describe(to);
			}
		} else if (event.key === 'Enter' || event.key === ' ') {
			this.zoom(this.current);
		} else if (event.key === 'Escape' || event.key === 'Backspace') {
			this.zoom(Math.max(0, this.frames[this.focus].parent));
		} else if (event.key === 'Home') {
			this.zoom(0);
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	}
}
