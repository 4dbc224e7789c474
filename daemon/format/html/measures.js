// SPDX-License-Identifier: BSD-2-Clause
// What a report has figures of, and how they are written: its clocks, calls, and resource counters.

import { bytes, count, nanoseconds, time } from './text.js';

// In words that fit a heading; a counter that is not known here has its name.
const TITLES = {
	vcsw: 'vol. switches',
	ivcsw: 'invol. switches',
	minflt: 'minor faults',
	majflt: 'major faults',
	rbytes: 'bytes read',
	wbytes: 'bytes written',
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

function counter({ name, text }) {
	const title = TITLES[name] ?? name;
	const isBytes = name.endsWith('bytes');

	return {
		key: name,
		label: title,
		title,
		help: text,
		self: `tot_${name}`,
		cum: `cum_${name}`,
		headings: [`${title} self`, `${title} cum`],
		text: isBytes ? bytes : count,
		exact: (n) => `${count(n)} ${isBytes ? 'bytes' : title}`,
		value: (n) => (isBytes ? `${bytes(n)} ${title.replace('bytes ', '')}` : `${count(n)} ${title}`),
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
export function measuresOf({ has, metrics }) {
	return [
		...(has.cpu ? [clock('cpu', 'CPU')] : []),
		...(has.wall ? [clock('wall', 'Wall')] : []),
		...(has.calls ? [CALLS] : []),
		...metrics.map(counter),
	];
}

// Those that are counted by contexts, as time is.
export function resourcesOf({ metrics }) {
	return metrics.map(counter);
}
