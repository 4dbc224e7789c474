// SPDX-License-Identifier: BSD-2-Clause
// The parts of wall time: on CPU, the garbage collector, reasons for waiting, and waiting without a
// known reason. Each part has a name beside its colour (page.css: --reason-KEY).

import { element, nanoseconds, percent, time } from './text.js';

// Key, name, name in a narrow bar, meaning. Reasons have the keys and the order of base/column.h.
const PARTS = [
	['on_cpu', 'on CPU', 'CPU', 'ran on a CPU'],
	['gc', 'garbage collection', 'GC', 'the garbage collector ran'],
	['waits_gil', 'GIL', 'GIL', 'waited for the GIL'],
	['waits_lock', 'lock', 'lock', 'waited for a lock'],
	['waits_runnable', 'no CPU', 'no CPU', 'wanted to run and had no CPU (run queue)'],
	['waits_io', 'I/O', 'I/O', 'waited for files, sockets, pipes or devices'],
	['waits_sleep', 'sleep', 'sleep', 'slept'],
	['waits_fault', 'page fault', 'fault', 'waited for pages'],
	['waits_process', 'process', 'process', 'waited for child processes'],
	['waits_other', 'other', 'other', 'waited in other system calls, or it is not known'],
	['unknown', 'reason unknown', '?', 'waited; no reason was measured'],
].map(([key, name, short, help]) => ({ key, name, short, help }));
const KINDS = {
	waits_io_disk: 'files',
	waits_io_socket: 'sockets',
	waits_io_poll: 'poll, select, epoll',
	waits_io_pipe: 'pipes',
	waits_io_device: 'other',
};

export const REASONS = PARTS.map(({ key }) => key).filter((key) => key.startsWith('waits_'));
// The figures from which the parts are computed, besides wall time.
export const FIGURES = ['on_cpu', 'gc', ...REASONS, ...Object.keys(KINDS)];

// The parts that are not 0, of figures that get(key) returns. Their sum is wall time, unless probe
// costs that were subtracted left less of it than of its parts.
export function partsOf(get) {
	const known = ['on_cpu', 'gc', ...REASONS].reduce((n, key) => n + get(key), 0);
	const kinds = Object.entries(KINDS)
		.map(([key, name]) => [name, get(key)])
		.filter(([, ns]) => ns > 0);
	const ns = (key) => (key === 'unknown' ? Math.max(0, get('wall') - known) : get(key));

	return PARTS.map((part) => ({
		...part,
		ns: ns(part.key),
		detail:
			part.key === 'waits_io' && kinds.length
				? ` (${kinds.map(([name, n]) => `${name} ${time(n)}`).join(', ')})`
				: '',
	})).filter((part) => part.ns > 0);
}

export function totalOf(parts) {
	return parts.reduce((n, part) => n + part.ns, 0);
}

// "GIL 62.0 %, on CPU 38.0 %", largest first.
export function sharesOf(parts) {
	const total = totalOf(parts);

	return [...parts]
		.sort((a, b) => b.ns - a.ns)
		.map((part) => `${part.name} ${percent(part.ns, total)}${part.detail}`)
		.join(', ');
}

export function colourOf(key) {
	return `var(--reason-${key.replace('waits_', '').replace('_', '-')})`;
}

function paint(e, key) {
	e.classList.toggle('unknown', key === 'unknown');
	e.style.setProperty('--reason', colourOf(key));
	return e;
}

// A stacked bar, as long as the parts' share of `longest`. Wide segments contain their name.
export function bar(parts, longest) {
	const total = totalOf(parts);
	const most = parts.reduce((n, part) => Math.max(n, part.ns), 0);
	const segments = parts.map((part) => {
		const share = percent(part.ns, total);
		const segment = element(
			'span',
			{
				class: part.ns === most ? 'part largest' : 'part',
				title: `${part.name}: ${nanoseconds(part.ns)}, ${share}${part.detail}\n${part.help}`,
			},
			part.ns / longest > 0.09 ? part.short : '',
		);

		segment.dataset.reason = part.key;
		segment.style.flexGrow = part.ns / longest;
		return paint(segment, part.key);
	});

	return element(
		'span',
		{ class: 'parts', role: 'img', 'aria-label': sharesOf(parts) || 'nothing' },
		...segments,
	);
}

// Items of a legend: colour, name, time and share of each part.
export function legend(parts) {
	const total = totalOf(parts);

	return parts.map((part) => {
		const item = element(
			'li',
			{ title: `${part.help}: ${nanoseconds(part.ns)}${part.detail}` },
			paint(element('span', { class: 'swatch', 'aria-hidden': 'true' }), part.key),
			`${part.name} `,
			element('small', {}, `${time(part.ns)}, ${percent(part.ns, total)}`),
		);

		item.dataset.reason = part.key;
		return item;
	});
}
