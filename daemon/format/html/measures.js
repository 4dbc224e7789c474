// SPDX-License-Identifier: BSD-2-Clause
// What a report has figures of, and how they are written: its clocks, calls, and optional columns.

import { bytes, count, nanoseconds, time } from './text.js';

// In words that fit a heading; a column that is not known here has its name.
const TITLES = {
	counters_vcsw: 'vol. switches',
	counters_ivcsw: 'invol. switches',
	counters_minflt: 'minor faults',
	counters_majflt: 'major faults',
	counters_rbytes: 'bytes read',
	counters_wbytes: 'bytes written',
	waits_gil: 'GIL',
	waits_runnable: 'no CPU',
	waits_io: 'I/O',
	waits_fault: 'page fault',
	waits_io_disk: 'file I/O',
	waits_io_socket: 'socket I/O',
	waits_io_poll: 'poll I/O',
	waits_io_pipe: 'pipe I/O',
	waits_io_device: 'other I/O',
	gil_held_ns: 'GIL held',
};

function clock(key, label) {
	return {
		key,
		label,
		title: key,
		help: `${key === 'cpu' ? 'CPU' : 'wall'} time`,
		self: `tot_${key}`,
		cum: `cum_${key}`,
		headings: [`tottime ${key}`, `cumtime ${key}`],
		text: time,
		exact: nanoseconds,
		value: (n) => `${time(n)} ${key}`,
	};
}

// By unit: how a figure is written, short and exact, and beside its title.
const UNITS = {
	ns: (title) => ({ text: time, exact: nanoseconds, value: (n) => `${time(n)} ${title}` }),
	bytes: (title) => ({
		text: bytes,
		exact: (n) => `${count(n)} bytes`,
		value: (n) => `${bytes(n)} ${title.replace('bytes ', '')}`,
	}),
	count: (title) => ({
		text: count,
		exact: (n) => `${count(n)} ${title}`,
		value: (n) => `${count(n)} ${title}`,
	}),
};

function optional({ name, label, text, unit }) {
	const title = TITLES[name] ?? label;

	return {
		key: name,
		label: title,
		title,
		help: text,
		self: `tot_${name}`,
		cum: `cum_${name}`,
		headings: [`${title} self`, `${title} cum`],
		...UNITS[unit](title),
	};
}

const CALLS = {
	key: 'calls',
	label: 'Calls',
	title: 'calls',
	help: 'calls',
	self: 'ncalls',
	cum: 'ncalls',
	headings: ['ncalls', 'ncalls'],
	text: count,
	exact: (n) => `${count(n)} calls`,
	value: (n) => `${count(n)} calls`,
};

// In the order in which they are offered.
export function measuresOf({ has, columns }) {
	return [
		...(has.cpu ? [clock('cpu', 'CPU')] : []),
		...(has.wall ? [clock('wall', 'Wall')] : []),
		...(has.calls ? [CALLS] : []),
		...columns.map(optional),
	];
}

// Those that contexts have besides times and calls.
export function columnsOf({ columns }) {
	return columns.map(optional);
}
