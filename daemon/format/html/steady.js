// SPDX-License-Identifier: BSD-2-Clause
// Draws a part of the page anew, without moving what the reader looks at or types into.

const FOCUSABLE = 'a[href], button, input, select, summary, [tabindex]';

// Runs draw(), which replaces the contents of box. Scroll positions stay, and the focus stays at the
// element with the same place in the order of the keyboard.
export function steady(box, draw) {
	const { scrollTop, scrollLeft } = box;
	const at = [...box.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);

	draw();
	box.scrollTop = scrollTop;
	box.scrollLeft = scrollLeft;
	if (at >= 0)
		[...box.querySelectorAll(FOCUSABLE)][at]?.focus({ preventScroll: true });
}
