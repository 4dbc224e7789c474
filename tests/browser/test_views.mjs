// SPDX-License-Identifier: BSD-2-Clause
// Views of the HTML report: threads grouped by name, the flame graph upside down, its colours, shares, and
// the columns that fit.

import assert from 'node:assert/strict';
import { functions } from './figures.mjs';
import { contrast, picture, REPORTS, snapshot, test, useBrowser, withReport } from './harness.mjs';
import { exact, frames, showColumns, tableRows } from './report.mjs';

useBrowser({ reports: REPORTS });

const percent = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`;

test('shares are those of the chosen measure', async () => {
	const { rows, ids } = functions(snapshot('whole'));

	await withReport('whole', {}, async (page) => {
		for (const [measure, field] of [['cpu', 'tot_cpu'], ['wall', 'tot_wall'], ['calls', 'ncalls']]) {
			const whole = [...rows.values()].reduce((n, r) => n + r[field], 0);

			await page.check(`input[name=measure][value=${measure}]`, { force: true });
			await page.waitForSelector(`.tabulator-col[tabulator-field=${field}][aria-sort=descending]`);
			for (const [id, cells] of await tableRows(page))
				assert.equal(cells.share, percent(rows.get(ids[id])[field], whole), `${ids[id]} ${measure}`);
		}
	});
});

test('the flame graph upside down: functions with their own shares, and their callers', async () => {
	const json = snapshot('whole');
	const { rows, ids } = functions(json);

	await withReport('whole', { viewport: { width: 1800, height: 1000 } }, async (page) => {
		await page.check('#inverted');
		const drawn = await frames(page);
		const own = new Map();

		for (const row of rows.values())
			own.set(row.label, (own.get(row.label) ?? 0) + row.tot_cpu);
		const first = new Map();
		for (const { path, value } of drawn.filter((f) => f.path.length === 2))
			first.set(path[1], (first.get(path[1]) ?? 0) + value);
		assert.ok(first.size > 1);
		for (const [name, value] of first)
			assert.equal(value, own.get(name), name);
		assert.ok(ids.length && drawn.some((f) => f.path.length > 2));
		// Below each are its callers: upwards paths of the graph as it was
		const upwards = new Set();
		await page.uncheck('#inverted');
		for (const { path } of await frames(page))
			for (let i = 1; i < path.length; i++)
				upwards.add(path.slice(1, i + 1).reverse().join('/'));
		for (const { path } of drawn.filter((f) => f.path.length > 2))
			assert.ok([...upwards].some((p) => p.startsWith(path.slice(1).join('/'))), path.join('/'));
	});
});

test('a legend says what colours mean', async () => {
	await withReport('random', {}, async (page) => {
		const legend = await page.$$eval('#flame-legend li', (list) =>
			list.map((li) => [li.textContent, li.firstElementChild && getComputedStyle(li.firstElementChild).backgroundColor]),
		);
		const fills = await page.$$eval('#chart g.frame rect', (list) => [...new Set(list.map((r) => getComputedStyle(r).fill))]);

		assert.ok(legend.some(([text]) => /^C functions \d/.test(text)));
		assert.ok(legend.length > 4);
		for (const [text, colour] of legend.filter(([, c]) => c))
			assert.ok(fills.includes(colour), `${text}: ${colour}`);
	});
});

test('many threads are grouped by name, and can be chosen as groups and one by one', async () => {
	const json = snapshot('many');
	const names = json.threads.map((t) => t.name.replace(/\d+/g, '#'));
	const many = names.find((n, i) => names.indexOf(n) !== i);
	const group = json.threads.filter((_, i) => names[i] === many);

	await withReport('many', {}, async (page) => {
		assert.ok(await page.isChecked('#by-name'));
		const row = page.locator('#threads-table .tabulator-row', { hasText: `${group.length} threads` });

		assert.equal(await row.count(), 1);
		assert.equal(
			exact(await row.locator('[tabulator-field=cpu] span').getAttribute('title')),
			group.reduce((n, t) => n + t.total.cpu, 0),
		);
		const all = await page.textContent('#threads-chosen');
		await row.locator('input').uncheck();
		await page.waitForFunction((n) => document.getElementById('threads-chosen').textContent === n, `${json.threads.length - group.length} of ${json.threads.length}`);
		await row.locator('input').check();
		await page.waitForFunction((text) => document.getElementById('threads-chosen').textContent === text, all);
		// Opened by keyboard, it shows its threads.
		await row.locator('.fold').focus();
		await page.keyboard.press('Enter');
		await page.waitForSelector('#threads-table .fold[aria-label^=hide]');
		const one = page.locator('#threads-table .tabulator-tree-level-1').first();
		await one.locator('input').uncheck();
		await page.waitForFunction((n) => document.getElementById('threads-chosen').textContent === n, `${json.threads.length - 1} of ${json.threads.length}`);
		assert.ok(await row.locator('input').evaluate((e) => e.indeterminate));
		await page.uncheck('#by-name');
		await page.waitForFunction((n) => document.querySelectorAll('#threads-table .tabulator-row').length >= Math.min(n, 10), json.threads.length);
		assert.equal(await page.locator('#threads-table .fold').count(), 0);
	});
});

for (const name of ['estimate', 'sampled', 'whole'])
	test(`figures are in view in windows of any size: ${name}`, async () => {
		for (const width of [390, 1440, 1920])
			await withReport(name, { viewport: { width, height: 900 } }, async (page) => {
				await page.waitForFunction(() => {
					const holder = document.querySelector('#functions-table .tabulator-tableholder');

					return holder.scrollWidth <= holder.clientWidth + 1;
				});
				const box = await page.$eval('#functions-table', (e) => e.getBoundingClientRect().right);
				const cells = await page.$$eval('#functions-table .tabulator-row:first-child .tabulator-cell', (list) =>
					list.filter((c) => c.offsetWidth).map((c) => [c.getAttribute('tabulator-field'), c.getBoundingClientRect().right]),
				);

				assert.ok(cells.length >= 3, `${cells}`);
				for (const [field, right] of cells)
					assert.ok(right <= box + 1, `${field} at ${width} px`);
				assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
				await picture(page, `${name}-${width}`);
			});
	});

test('ordinary estimates are no alarm', async () => {
	await withReport('sampled', {}, async (page) => {
		assert.ok(!(await page.isVisible('#banner')));
		assert.match(await page.textContent('#notice'), /^ESTIMATE sampled/);
		assert.equal(await page.textContent('#quality'), 'estimates');
		assert.equal(await page.locator('#lines .warning').count(), 0);
		assert.ok((await contrast(page, '#notice p')) >= 4.5);
		assert.ok((await contrast(page, '#quality')) >= 4.5);
		await showColumns(page, ['tot_cpu']);
		assert.match(await page.textContent('#functions-table .tabulator-row [tabulator-field=tot_cpu]'), /±/);
	});
});
