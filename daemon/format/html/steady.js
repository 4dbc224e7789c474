// SPDX-License-Identifier: BSD-2-Clause
// Draws a part of the page anew, without moving what the reader looks at or types into.

const FOCUSABLE = 'a[href], button, input, select, summary, [tabindex]';

const waiting = new Map(); // boxes that are drawn when no pointer is pressed any more
let pressed = null; // the element under it

// The click follows this event.
function released() {
	setTimeout(() => {
		const boxes = [...waiting];

		pressed = null;
		waiting.clear();
		for (const [box, draw] of boxes)
			steady(box, draw);
	});
}

addEventListener('pointerdown', ({ target }) => (pressed = target), true);
addEventListener('pointerup', released, true);
addEventListener('pointercancel', released, true);

// Runs draw(), which replaces the contents of box. Scroll positions stay, and the focus stays at the
// element with the same place in the order of the keyboard. While a pointer is pressed inside, it waits: a button that
// is replaced then is not clicked.
export function steady(box, draw) {
	if (pressed && box.contains(pressed)) {
		waiting.set(box, draw);
		return;
	}
	const { scrollTop, scrollLeft } = box;
	const at = [...box.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);

	draw();
	box.scrollTop = scrollTop;
	box.scrollLeft = scrollLeft;
	if (at >= 0)
		[...box.querySelectorAll(FOCUSABLE)][at]?.focus({ preventScroll: true });
}
