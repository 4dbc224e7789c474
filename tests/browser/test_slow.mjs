// SPDX-License-Identifier: BSD-2-Clause
// The page of slow calls: the calls of the JSON, each in the order of time, and names as plain text.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { contrast, picture, REPORTS, test, useBrowser, withReport } from './harness.mjs';

useBrowser({ reports: REPORTS });

const json = () => JSON.parse(readFileSync(join(REPORTS, 'slow_calls.json'), 'utf8'));

const slots = (page) =>
	page.$$eval('#slow-chart .slot', (list) =>
		list.map((e) => ({
			name: e.textContent,
			text: e.getAttribute('aria-label'),
			left: parseFloat(e.style.left),
			width: parseFloat(e.style.width),
			top: parseFloat(e.style.top),
		})),
	);

test('slow: the list has the calls, with their reasons', async () => {
	const { calls, functions } = json();

	await withReport('slow_calls', {}, async (page) => {
		const rows = await page.$$eval('#slow-list tr[data-key]', (list) =>
			list.map((tr) => ({
				name: tr.querySelector('.name').textContent,
				wall: tr.cells[1].title,
				cpu: tr.cells[2].title,
				why: tr.querySelector('.parts').getAttribute('aria-label'),
			})),
		);

		assert.equal(rows.length, calls.length);
		rows.forEach((row, i) => {
			assert.equal(row.name, functions[calls[i].nodes[0].function].name.replace('\x1b', '\\x1b'));
			assert.equal(row.wall, `${calls[i].wall_ns.toLocaleString('en')} ns`);
			assert.equal(row.cpu, `${calls[i].cpu_ns.toLocaleString('en')} ns`);
		});
		assert.match(rows[0].why, /^I\/O 80\.0 % \(sockets 80\.0 ms\), on CPU 10\.0 %, lock 10\.0 %$/);
		assert.match(await page.textContent('#slow-summary'), /at least 10\.0 ms.*40 calls in 2\.00 s, 3 of them slow.*not timed: 2 had begun before/);
	});
});

test('slow: frames are where they were in time, and the order is said to be unknown without steps', async () => {
	await withReport('slow_calls', { viewport: { width: 1440, height: 900 } }, async (page) => {
		const width = await page.$eval('#slow-chart', (e) => e.clientWidth);
		const near = (frame, from, to, level) => {
			assert.ok(Math.abs(frame.left - (from / 100) * width) < 1.5, `${frame.text}: ${frame.left}`);
			assert.ok(Math.abs(frame.width - ((to - from) / 100) * width) < 1.5, `${frame.text}: ${frame.width}`);
			assert.equal(frame.top, 20 * level);
		};
		const [root, query, lock, again] = await slots(page);

		near(root, 0, 100, 0);
		near(query, 5, 45, 1);
		near(lock, 50, 60, 1);
		near(again, 60, 100, 1);
		assert.match(query.text, /^query · 40\.0 ms, 40\.0 % · from 5\.00 ms to 45\.0 ms · /);
		assert.equal(again.name, 'query');

		// By keyboard: the second query, zoomed to, and back
		await page.focus('#slow-chart');
		for (const key of ['ArrowDown', 'ArrowRight', 'ArrowRight', 'Enter'])
			await page.keyboard.press(key);
		assert.match(await page.textContent('#slow-frame'), /^query · 40\.0 ms, .* from 60\.0 ms/);
		assert.ok((await slots(page)).every((s) => Math.abs(s.width - width) < 1.5));
		await page.keyboard.press('Escape');
		assert.equal((await slots(page)).length, 4);

		// The second call has no steps.
		await page.click('#slow-list tr[data-key] >> nth=1 >> button');
		await page.waitForFunction(() => /order in time is not known/.test(document.getElementById('slow-note').textContent));
		assert.equal((await slots(page)).length, 3);
	});
});

test('slow: hostile names are only names', async () => {
	await withReport('slow_calls', {}, async (page) => {
		await page.click('#slow-list tr[data-key] >> nth=2 >> button');
		assert.equal(await page.textContent('#slow-list tr[data-key] >> nth=2 >> .name'), '</script><script>alert(1)</script>\\x1b[2J');
		assert.equal(await page.locator('script').count(), 1);
	});
});

for (const colorScheme of ['light', 'dark'])
	test(`slow: fits into windows of any size, legible, ${colorScheme}`, async () => {
		for (const width of [390, 1440, 1920])
			await withReport('slow_calls', { colorScheme, viewport: { width, height: 900 } }, async (page) => {
				assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
				assert.ok(await page.isVisible('#slow-list .parts'));
				assert.equal(await page.$eval('#slow-list', (e) => e.scrollWidth > e.clientWidth), false, `${width} px`);
				assert.equal(await page.$eval('#slow-functions', (e) => e.scrollWidth > e.clientWidth), false, `${width} px`);
				for (const selector of ['#slow-summary', '#slow th', '#slow .link', '#slow .where', '.slot', '#slow-legend small'])
					assert.ok((await contrast(page, selector)) >= 4.5, `${selector}, ${colorScheme}`);
				await picture(page, `slow-${colorScheme}-${width}`);
			});
	});
