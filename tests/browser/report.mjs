// SPDX-License-Identifier: BSD-2-Clause
// Parts of an open report: its table, its flame graph, the chosen measure.

export const FIELDS = ['ncalls', 'pcalls', 'tot_cpu', 'cum_cpu', 'tot_wall', 'cum_wall'];

// "1,234 ns, 5.6 %" and "1,234 calls"
export const exact = (text) => Number(/^[\d,]+/.exec(text)[0].replaceAll(',', ''));

// Returns the whole table: rows only exist while they are visible, so the test scrolls through it.
export async function tableRows(page) {
	const rows = new Map();

	await page.$eval('#functions-table .tabulator-tableholder', (h) => h.scrollTo(0, 0));
	for (;;) {
		const seen = await page.$$eval('#functions-table .tabulator-row', (list) =>
			list.map((row) => [
				Number(row.id.replace('row-', '')),
				Object.fromEntries(
					[...row.querySelectorAll('.tabulator-cell')].map((c) => [
						c.getAttribute('tabulator-field'),
						c.firstElementChild.title || c.textContent,
					]),
				),
			]),
		);
		const more = await page.$eval('#functions-table .tabulator-tableholder', (h) => {
			const before = h.scrollTop;
			h.scrollBy(0, h.clientHeight / 2);
			return h.scrollTop > before;
		});

		for (const [id, row] of seen)
			rows.set(id, row);
		if (!more)
			return rows;
		await page.waitForFunction(() => new Promise((r) => requestAnimationFrame(() => r(true))));
	}
}

export async function showColumns(page, fields) {
	await page.click('.chooser summary');
	for (const field of fields)
		await page.check(`#columns input[value=${field}]`);
	await page.click('.chooser summary');
}

// Returns the ids of the topmost rows, in order.
export function topRows(page) {
	return page.$$eval('#functions-table .tabulator-row', (rows) =>
		rows
			.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
			.map((r) => Number(r.id.replace('row-', ''))),
	);
}

export async function sortBy(page, field) {
	await page.click(`#functions-table .tabulator-col[tabulator-field=${field}] .tabulator-col-title`);
}

// Returns the drawn frames: path, and the exact figure that d3-flame-graph draws. It moves an existing
// frame to its new width in an animation, some frames of the screen later, even without a duration.
export async function frames(page) {
	await page.waitForFunction(() => {
		const width = (g) => g.querySelector('rect').getBBox().width;
		const value = (g) => g.__data__.data.value;
		const list = [...document.querySelectorAll('#chart g.frame')];
		const root = list.find((g) => !g.__data__.parent);

		return (
			root && list.every((g) => Math.abs(width(g) - (width(root) * value(g)) / value(root)) < 0.01)
		);
	});
	return page.$$eval('#chart g.frame', (list) =>
		list.map((g) => {
			const path = [];
			for (let d = g.__data__; d; d = d.parent)
				path.unshift(d.data.name);
			return {
				id: g.id,
				path,
				value: g.__data__.data.value,
				width: g.querySelector('rect').getBBox().width,
				label: g.getAttribute('aria-label'),
			};
		}),
	);
}

export const COUNTERS = ['vcsw', 'ivcsw', 'minflt', 'majflt', 'rbytes', 'wbytes'];

// One measure after the other, as the page shows a measure's columns only when it is selected.
export async function choose(page, measure) {
	await page.check(`input[name=measure][value=${measure}]`, { force: true });
	await page.waitForSelector(
		`.tabulator-col[tabulator-field=${measure === 'calls' ? 'ncalls' : `tot_${measure}`}][aria-sort=descending]`,
	);
}

// The heading of a column is visible, however many columns there are.
export function inView(page, field) {
	return page.waitForFunction((f) => {
		const box = document.querySelector('#functions-table').getBoundingClientRect();
		const head = document.querySelector(`.tabulator-col[tabulator-field=${f}]`).getBoundingClientRect();

		return head.left >= box.left && head.right <= box.right + 1;
	}, field);
}

// Returns the exact contents of a table's cells, by row.
export function exactCells(page, selector) {
	return page.$$eval(selector, (list) =>
		list.map((tr) => ({ id: tr.dataset.id, cells: [...tr.querySelectorAll('td[title]')].map((td) => td.title) })),
	);
}
