// SPDX-License-Identifier: BSD-2-Clause
// The live page in a browser, with a real daemon (root): it attaches, starts and stops, shows what the
// command line shows, keeps what the reader looks at, and says what is wrong.

import assert from 'node:assert/strict';
import { after, before, test as nodeTest } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { contrast, picture, REPORTS, REQUIRED, test as browserTest, useBrowser, withPage } from './harness.mjs';
import { Rig } from './live.mjs';
import { exact, sortBy } from './report.mjs';

useBrowser({ reports: REPORTS });

const possible = process.getuid() === 0 || REQUIRED;
let rig;

before(async () => {
	if (possible)
		rig = await new Rig().start();
});
after(() => rig?.end());

function test(name, body) {
	if (possible)
		browserTest(name, body);
	else
		nodeTest(name, { skip: 'needs root' }, () => {});
}

// Throws the error of a test, with what the page and the daemon say.
async function explained(error, page) {
	const shown = (id) => page.evaluate((i) => document.querySelector(i)?.textContent, id).catch(() => 'nothing');
	const says = [await shown('#problem'), await shown('#attach-note'), await shown('#targets-table')];
	let status = 'no answer';

	try {
		status = rig.ctl('status');
	} catch {
		// The daemon may be gone.
	}
	error.message = `${error.message.replaceAll('\n', ' ')}; the page: ${says.join(' | ')}; status: ${status.replaceAll('\n', ' | ')}`;
	throw error;
}

async function withLive(options, body) {
	await withPage(rig.url, options, async (page, seen) => {
		await page.waitForSelector('html[data-ready]');
		await page.selectOption('#interval', '1000');
		await body(page, seen).catch((error) => explained(error, page));
		const { origin } = new URL(rig.url);

		assert.deepEqual(seen.requests.filter((r) => !r.startsWith('data:') && !r.startsWith(origin)), []);
	});
}

// The exact number of calls of a function in the table; null: it has no row.
function calls(page, name) {
	return page.evaluate((n) => {
		for (const row of document.querySelectorAll('#functions-table .tabulator-row'))
			if (row.querySelector('.name')?.textContent === n)
				return row.querySelector('[tabulator-field=ncalls] span')?.title ?? null;
		return null;
	}, name);
}

async function callsBecome(page, name, n) {
	await page.waitForFunction(
		([f, text]) =>
			[...document.querySelectorAll('#functions-table .tabulator-row')].some(
				(row) =>
					row.querySelector('.name')?.textContent === f &&
					row.querySelector('[tabulator-field=ncalls] span')?.title.startsWith(`${text} calls`),
			),
		[name, n.toLocaleString('en')],
	);
}

async function updated(page, n = 2) {
	const from = await page.evaluate(() => Number(document.documentElement.dataset.updates ?? 0));

	await page.waitForFunction((k) => Number(document.documentElement.dataset.updates) >= k, from + n);
}

// Waits until two looks in a row find the same.
async function settled(page, state) {
	let last;

	for (let now = await state(); !isDeepStrictEqual(now, last); now = await state()) {
		last = now;
		await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
	}
	return last;
}

const button = (page, label) => page.locator(`[data-pid="${rig.pid}"] >> text="${label}"`);

test('live: attaches to a process that is found by name, starts, stops and detaches', async () => {
	await withLive({}, async (page) => {
		assert.match(await page.textContent('#targets-table'), /No process is attached/);
		await page.click('#attaching summary');
		await page.fill('#process-filter', 'def dawdle');
		await page.waitForSelector(`input[name=process][value="${rig.pid}"]`);
		await page.check(`input[name=process][value="${rig.pid}"]`);
		assert.equal(await page.locator('select[name=mode] option').count(), 3);
		await page.click('#forecast');
		await page.waitForFunction(() => !/^$|Looking/.test(document.getElementById('attach-note').textContent));
		await page.click('#attach');
		await button(page, 'Stop').waitFor();
		assert.match(rig.ctl('status'), /tracing/);
		await rig.tell(23);
		await callsBecome(page, 'told', 23);
		assert.equal(rig.calls('told'), 23);

		await button(page, 'Stop').click();
		// It can be pressed when the daemon has answered, and no probe is left.
		await page.waitForSelector(`[data-pid="${rig.pid}"] button:text-is("Start"):enabled`);
		assert.doesNotMatch(rig.ctl('status'), /tracing/);
		await rig.tell(100, false);
		await button(page, 'Start').click();
		await button(page, 'Stop').waitFor();
		await rig.tell(1000);
		await callsBecome(page, 'told', rig.told);
		assert.equal(rig.calls('told'), 1023);
		assert.equal(await page.isVisible('#problem'), false);
	});
});

test('live: a moment, and what happened since and before', async () => {
	await withLive({}, async (page) => {
		const first = rig.told;

		await callsBecome(page, 'told', first);
		// What the reader chose stays, though an interval has other columns.
		await sortBy(page, 'label');
		await page.waitForSelector('.tabulator-col[tabulator-field=label][aria-sort=ascending]');
		await page.click('#mark');
		await rig.tell(77);
		await callsBecome(page, 'told', 77);
		await callsBecome(page, 'inner', 77);
		await page.locator('#functions-table .name', { hasText: /^told$/ }).click();
		await page.waitForFunction(() => document.querySelector('#details .callees .per-call')?.textContent === '× 1 per call');
		await page.waitForSelector('.tabulator-col[tabulator-field=label][aria-sort=ascending]');
		await page.check('#compare');
		assert.match(await page.textContent('#flame-legend'), /no change/);
		await page.click('#mark');
		await rig.tell(5);
		await callsBecome(page, 'told', 5);
		// Between the moments
		const values = await page.$$eval('#from option', (list) => list.map((o) => o.value));
		await page.selectOption('#from', values[1]);
		await page.selectOption('#to', values[2]);
		await callsBecome(page, 'told', 77);
		await page.selectOption('#from', 'start');
		await callsBecome(page, 'told', first + 77);
		await page.selectOption('#to', 'now');
		await callsBecome(page, 'told', rig.told);
		assert.equal(rig.calls('told'), first + 82);
	});
});

test('live: zoom, selection, scroll, focus and search stay while it refreshes', async () => {
	await withLive({ viewport: { width: 1400, height: 700 } }, async (page) => {
		await callsBecome(page, 'told', rig.told);
		await page.check('input[name=measure][value=calls]', { force: true });
		await page.locator('#functions-table .tabulator-row', { hasText: 'told' }).first().click();
		await page.waitForFunction(() => document.querySelector('#details h3')?.textContent === 'told');
		await page.click('#details header button');
		await page.waitForFunction(() => /told/.test(document.querySelector('#path li:last-child').textContent));
		await page.locator('#functions-table .tabulator-row', { hasText: 'told' }).first().click();
		await page.fill('#search', 'tol');
		await page.evaluate(() => scrollTo(0, 150));
		await page.focus('#details .callees button, #details .callers button');
		const state = () =>
			page.evaluate(() => ({
				path: document.getElementById('path').textContent,
				heading: document.querySelector('#details h3').textContent,
				selected: document.querySelector('.tabulator-row.selected .name')?.textContent,
				search: document.getElementById('search').value,
				rows: document.querySelectorAll('#functions-table .tabulator-row').length,
				scroll: scrollY,
				focus: document.activeElement.textContent,
				sorted: document.querySelector('#functions-table [aria-sort=descending]').getAttribute('tabulator-field'),
			}));
		const first = await settled(page, state);

		assert.equal(first.heading, 'told');
		await rig.tell(10);
		await updated(page, 3);
		assert.deepEqual(await state(), first);
		await page.fill('#search', '');
		await callsBecome(page, 'told', rig.told);
	});
});

test('live: the flame graph upside down has the callers below', async () => {
	await withLive({ viewport: { width: 1800, height: 1000 } }, async (page) => {
		await callsBecome(page, 'told', rig.told);
		await page.check('input[name=measure][value=calls]', { force: true });
		await page.check('#inverted');
		const paths = () =>
			page.$$eval('#chart g.frame', (list) =>
				list.map((g) => {
					const path = [];
					for (let d = g.__data__; d; d = d.parent)
						path.unshift(d.data.name);
					return [path.join('/'), g.__data__.data.value];
				}),
			);

		assert.deepEqual(Object.fromEntries((await paths()).filter(([p]) => p === 'all/inner/told')), { 'all/inner/told': rig.told });
		await updated(page);
		assert.ok((await paths()).some(([p]) => p === 'all/inner/told/<module>'));
	});
});

test('live: slow calls, each in the order of time', async () => {
	await withLive({}, async (page) => {
		await callsBecome(page, 'told', rig.told);
		await page.fill('#slow-match', 'request|told');
		await page.fill('#slow-over', '200ms');
		await page.click('#slow-start');
		await page.waitForSelector('#slow-stop:not([disabled])');
		await rig.tell(3);
		await rig.tell('slow');
		// Where the machine is busy, a short call may take long as well.
		const row = page.locator('#slow-list tr[data-key]', { hasText: 'request' });
		await row.waitFor();
		assert.equal(await row.count(), 1);
		const why = await row.locator('.parts').getAttribute('aria-label');
		const share = (reason) => Number(new RegExp(`${reason} ([\\d.]+) %`).exec(why)?.[1] ?? 0);
		assert.ok(share('sleep') > 0 && share('sleep') + share('no CPU') + share('GIL') + share('on CPU') > 90, why);
		await row.locator('button').click();
		await page.waitForFunction(() => document.querySelector('#slow-chart .slot')?.getAttribute('aria-label').startsWith('request'));
		const drawn = await page.$$eval('#slow-chart .slot', (list) =>
			list.map((e) => ({ text: e.getAttribute('aria-label'), left: e.offsetLeft, width: e.offsetWidth })),
		);
		const dawdle = drawn.find(({ text }) => text.startsWith('dawdle'));
		const percent = Number(/ ([\d.]+) %/.exec(dawdle.text)[1]);

		assert.ok(Math.abs((100 * dawdle.width) / drawn[0].width - percent) < 1, `${dawdle.text}: ${dawdle.width} of ${drawn[0].width}`);
		await page.focus('#slow-chart');
		await page.keyboard.press('ArrowDown');
		assert.match(await page.textContent('#slow-frame'), /^(inner|dawdle) · /);
		await page.click('#slow-stop');
		await page.waitForSelector('#slow-start:not([disabled])');
		assert.match(await page.textContent('#slow-summary'), /4 calls in .*[1-4] of them slow/);
		assert.equal(await row.count(), 1);
		await picture(page, 'live-slow');
	});
});

for (const colorScheme of ['light', 'dark'])
	test(`live: fits into windows of any size, legible, ${colorScheme}`, async () => {
		for (const width of [390, 1440, 1920])
			await withLive({ colorScheme, viewport: { width, height: 1000 } }, async (page) => {
				await page.waitForSelector('#functions-table .tabulator-row');
				await page.click('#attaching summary');
				await page.waitForSelector('.processes li');
				assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${width} px`);
				for (const selector of ['.targets td', '.targets th', '.processes small', '#connection', '#slow-summary', '.moments legend', '#flame-legend small', '#attach'])
					assert.ok((await contrast(page, selector)) >= 4.5, `${selector}, ${colorScheme}`);
				// The figures are in view beside the names.
				await page.waitForFunction(() => {
					const cell = document.querySelector('#functions-table .tabulator-row [tabulator-field=share]');
					const { right } = document.getElementById('functions-table').getBoundingClientRect();

					return cell && cell.getBoundingClientRect().width > 0 && cell.getBoundingClientRect().right <= right;
				});
				await picture(page, `live-${colorScheme}-${width}`);
			});
	});

test('live: everything to press or fill in has a name, and can be reached by keyboard', async () => {
	await withLive({}, async (page) => {
		await page.waitForSelector('#functions-table .tabulator-row');
		const nameless = await page.$$eval('button, input, select, summary', (list) =>
			list
				.filter((e) => e.checkVisibility())
				.filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length))
				.map((e) => e.outerHTML),
		);
		const unreachable = await page.$$eval('button, input, select', (list) =>
			list.filter((e) => e.tabIndex < 0).map((e) => e.outerHTML),
		);

		assert.deepEqual([nameless, unreachable], [[], []]);
	});
});

test('live: pauses, and goes on', async () => {
	await withLive({}, async (page) => {
		await callsBecome(page, 'told', rig.told);
		await page.click('#pause');
		const before = await page.evaluate(() => document.documentElement.dataset.updates);
		await rig.tell(2);
		assert.equal(await page.textContent('#connection'), 'paused');
		await page.waitForTimeout(2500);
		assert.ok((await page.evaluate(() => document.documentElement.dataset.updates)) - before <= 1);
		await page.click('#pause');
		await callsBecome(page, 'told', rig.told);
	});
});

// The browser writes each answer that is an error to the console.
const expected = (wrong) => {
	for (let i = wrong.length - 1; i >= 0; i--)
		if (/^Failed to load resource/.test(wrong[i]))
			wrong.splice(i, 1);
};

test('live: errors are shown with what to do', async () => {
	await withLive({}, async (page, { wrong }) => {
		await page.click('#attaching summary');
		await page.waitForSelector('.processes li');
		await page.fill('#process-filter', '1');
		await page.waitForSelector('input[name=process][value="1"]');
		await page.check('input[name=process][value="1"]');
		await page.click('#attach');
		await page.waitForSelector('#problem:not([hidden])');
		assert.match(await page.textContent('#problem'), /.+: .+/);
		await page.fill('#slow-over', 'soon');
		await page.click('#slow-start');
		await page.waitForFunction(() => /invalid limit 'soon': expected e\.g\. 0\.2, 200ms/.test(document.getElementById('problem').textContent));
		await page.fill('#slow-over', '');
		expected(wrong);
	});
});

test('live: says that the daemon is gone, and goes on with the next one', async () => {
	await withLive({}, async (page, { wrong }) => {
		await callsBecome(page, 'told', rig.told);
		await rig.daemon.stop();
		await page.waitForFunction(() => document.getElementById('connection').textContent === 'no daemon');
		assert.match(await page.textContent('#problem'), /no daemon at .*start pyprofd/);
		// What was measured is still there.
		assert.equal(exact(await calls(page, 'told')), rig.told);
		await rig.startDaemon();
		await page.waitForFunction(() => document.getElementById('connection').textContent === 'live');
		assert.equal(await page.isVisible('#problem'), false);
		assert.match(await page.textContent('#targets-table'), /No process is attached/);
		expected(wrong);
	});
});
