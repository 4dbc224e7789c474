// SPDX-License-Identifier: BSD-2-Clause
// Text for people. Names were chosen by the traced program and may hold anything; they are only
// ever set as text, never as markup, and what would not be seen, or would move what stands beside
// it, is shown as \xNN or \u{…}, as in a terminal (format/names.c).

const HARMFUL =
	/[\u0000-\u001f\u007f-\u009f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\ufffb\ufffe\uffff\u{110bd}\u{110cd}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e007f}\u{10fffe}\u{10ffff}]/gu;
const LONGEST = 1000;

function escaped(c) {
	const cp = c.codePointAt(0);
	const hex = cp.toString(16);

	return cp < 0x100 ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`;
}

// All of a name, harmless; one of blanks only is seen to be one.
export function visible(s) {
	return s.replace(/^\s+$/u.test(s) ? /./gsu : HARMFUL, escaped);
}

// The same, without the middle where it is longer than anyone reads.
export function shortened(s, longest = LONGEST) {
	const text = visible(s);
	const half = longest >> 1;

	return text.length <= longest ? text : `${text.slice(0, half)}…${text.slice(-half)}`;
}

// The end of a path says most: the rest is in the tooltip.
export function tail(where) {
	return where.split('/').slice(-2).join('/');
}

const UNITS = [
	[3.6e12, 'h'],
	[1e9, 's'],
	[1e6, 'ms'],
	[1e3, 'µs'],
];

const SIZES = [
	[1e12, 'TB'],
	[1e9, 'GB'],
	[1e6, 'MB'],
	[1e3, 'kB'],
];

function scaled(n, units, smallest, digits) {
	for (const [size, unit] of units) {
		const m = n / size;

		if (m >= (unit === 'h' ? 10 : 0.9995))
			return `${m >= 10 ** digits - 0.5 ? Math.round(m).toLocaleString('en') : m.toPrecision(digits)} ${unit}`;
	}
	return `${Math.round(n)} ${smallest}`;
}

// Three significant digits, or all of what is whole.
export function time(ns, digits = 3) {
	return scaled(ns, UNITS, 'ns', digits);
}

export function bytes(n) {
	return scaled(n, SIZES, 'B', 3);
}

// All digits; sums that JavaScript cannot hold exactly are marked.
export function count(n) {
	const digits = Math.round(n).toLocaleString('en');

	return n > Number.MAX_SAFE_INTEGER ? `≈ ${digits}` : digits;
}

export function nanoseconds(ns) {
	return `${count(ns)} ns`;
}

// A figure's standard error in the figure's own unit, as it stands beside it. Nothing where it is not
// known (null), or where the figure is exact (0).
export function plusMinus(error, text) {
	return error ? `±${text(error, 2)}` : '';
}

export function percent(part, whole) {
	return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : '–';
}

// An element with attributes and children; strings become text.
export function element(tag, attributes = {}, ...children) {
	const e = document.createElement(tag);

	for (const [name, value] of Object.entries(attributes)) {
		if (typeof value === 'function')
			e.addEventListener(name, value);
		else if (value === true)
			e.setAttribute(name, '');
		else if (value !== false && value !== null && value !== undefined)
			e.setAttribute(name, value);
	}
	e.append(...children);
	return e;
}
