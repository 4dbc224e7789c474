// SPDX-License-Identifier: BSD-2-Clause
// The HTML report's reasons for waiting: bars by function, the flame graph's colours, and who held the
// GIL; where they were not measured, the report says why.

import assert from 'node:assert/strict';
import { functions, identity } from './figures.mjs';
import { contrast, picture, REPORTS, snapshot, test, useBrowser, withReport } from './harness.mjs';

useBrowser({ reports: REPORTS });

const REASONS = ['gil', 'lock', 'runnable', 'io', 'sleep', 'fault', 'process', 'other'];
const exact = (text) => Number(/[\d,]+(?= ns)/.exec(text)[0].replaceAll(',', ''));

// Per function of the JSON format: waiting, own and cumulative, and the parts of its own and its
// cumulative wall time, as far as the format says. ids as in the page.
function known(json) {
	const { ids } = functions(json);
	const sum = (waits) => REASONS.reduce((n, reason) => n + waits[reason], 0);

	return new Map(
		json.functions.map((f) => [
			ids.indexOf(identity(f)),
			{ f, tot: sum(f.waits), cum: sum(f.waits_cum), reasons: { tot: f.waits, cum: f.waits_cum } },
		]),
	);
}

// The rows that the page shows: function, figures, parts of the bar and their width.
function bars(page) {
	return page.$$eval('#waits-table tbody tr', (list) =>
		list.map((tr) => ({
			id: Number(tr.dataset.id),
			figures: [...tr.querySelectorAll('td[title]')].map((td) => td.title),
			label: tr.querySelector('.parts').getAttribute('aria-label'),
			width: tr.querySelector('.parts').getBoundingClientRect().width,
			parts: [...tr.querySelectorAll('.part')].map((part) => ({
				reason: part.dataset.reason,
				title: part.title,
				width: part.getBoundingClientRect().width,
			})),
		})),
	);
}

async function showAll(page) {
	while (await page.isVisible('#waits-table .more'))
		await page.click('#waits-table .more');
}

const partOf = (row, reason) => {
	const part = row.parts.find((p) => p.reason === reason);

	return part ? exact(part.title) : 0;
};

test('waits: bars have the snapshot’s reasons, own and cumulative, and are as long as these', async () => {
	const all = known(snapshot('waits'));

	await withReport('waits', {}, async (page) => {
		assert.equal((await bars(page)).length, 20);
		for (const kind of ['tot', 'cum']) {
			await page.click(`#waits-table [data-sort=${kind}]`);
			await page.waitForSelector(`#waits-table th[aria-sort=descending] [data-sort=${kind}]`);
			await showAll(page);
			const rows = await bars(page);
			const want = [...all.values()].filter((w) => w.tot || w.cum || w.f.gc);
			const longest = Math.max(...want.map((w) => w.f[`${kind}time`].wall));

			assert.equal(rows.length, want.length);
			assert.deepEqual(
				rows.map((row) => all.get(row.id)[kind]),
				want.map((w) => w[kind]).sort((a, b) => b - a),
			);
			for (const row of rows) {
				const { f, tot, cum, reasons } = all.get(row.id);

				assert.deepEqual(row.figures.map(exact), [tot, cum]);
				for (const reason of REASONS)
					assert.equal(partOf(row, `waits_${reason}`), reasons[kind][reason], `${f.name}: ${reason}`);
				assert.equal(row.parts.reduce((n, p) => n + exact(p.title), 0), f[`${kind}time`].wall);
				for (const part of row.parts.filter((p) => p.width > 4))
					assert.ok(Math.abs(part.width - (row.width * exact(part.title)) / longest) < 4, `${f.name}: ${part.title}`);
			}
			// What is in the garbage collector, and what has no reason
			const row = (name) => rows.find(({ id }) => all.get(id).f.name === name);
			assert.equal(partOf(row('main'), 'gc'), kind === 'cum' ? 90000000 : 0);
			assert.equal(partOf(row('<gc generation 2>'), 'gc'), 90000000);
			assert.equal(partOf(row('<gc generation 2>'), 'on_cpu'), 0);
			assert.equal(partOf(row('main'), 'unknown'), kind === 'cum' ? 60000000 : 0);
			assert.match(row('fetch').parts.find((p) => p.reason === 'waits_io').title, /sockets 500 ms, poll, select, epoll 200 ms/);
			assert.match(row('fetch').label, /^I\/O 83\.3 % \(.*\), page fault 11\.9 %, on CPU 4\.8 %$/);
		}
		assert.match(await page.textContent('#waits-note'), /^other: ioctl 100 ms in 4 waits\.$/);
	});
});

test('waits: the chosen threads’, and what matches the search', async () => {
	const json = snapshot('waits');
	const worker = json.threads.findIndex((t) => t.tid === 43);
	const want = json.nodes
		.filter((n) => n.thread === worker && n.func !== null)
		.reduce((n, node) => n + REASONS.reduce((k, reason) => k + node.waits[reason], 0), 0);

	await withReport('waits', {}, async (page) => {
		await page.fill('#search', 'locked|fork');
		await page.waitForFunction(() => document.querySelectorAll('#waits-table tbody tr').length === 2);
		// No pair has one of these.
		assert.match(await page.textContent('#held-table'), /No pair matches/);
		await page.fill('#search', '');
		await page.locator('#threads-table .tabulator-row', { hasText: 'MainThread' }).locator('input').uncheck();
		await page.waitForFunction(() => !document.getElementById('waits-table').textContent.includes('fetch'));
		await showAll(page);
		const rows = await bars(page);
		const sum = rows.reduce((n, row) => n + exact(row.figures[0]), 0);
		assert.equal(sum, want);
		assert.ok(sum > 0);
		await page.click('#none');
		await page.waitForFunction(() => document.getElementById('waits-table').textContent === 'Nothing waited.');
		assert.ok(!(await page.isVisible('#held')));
	});
});

test('waits: functions that held the GIL, and those that waited for it meanwhile', async () => {
	const json = snapshot('waits');
	const name = (func) => (func === null ? 'outside Python' : json.functions[func].name);

	await withReport('waits', {}, async (page) => {
		const shown = await page.$$eval('#held-table tbody tr', (list) =>
			list.map((tr) => [
				tr.cells[0].title,
				...[1, 2].map((i) => (tr.cells[i].querySelector('.name') ?? tr.cells[i]).textContent),
			]),
		);

		assert.deepEqual(
			shown.map(([ns, holder, waiter]) => [exact(ns), holder, waiter]),
			json.gil_pairs.map((p) => [p.ns, name(p.holder), name(p.waiter)]),
		);
		await page.click('#held-table .link >> text=busy');
		await page.waitForFunction(() => document.querySelector('#details h3').textContent === 'busy');
	});
});

// The drawn frames by name: colours from left to right, each with the share at which it ends.
function shades(page) {
	return page.$$eval('#chart g.frame', (list) =>
		list.map((g) => {
			const fill = g.querySelector('rect').getAttribute('fill');
			const id = /^url\(#(.*)\)$/.exec(fill)?.[1];
			const stops = id ? [...document.getElementById(id).querySelectorAll('stop')] : [];
			const runs = stops
				.filter((_, i) => i % 2)
				.map((stop) => [stop.style.stopColor, Number(stop.getAttribute('offset'))]);
			const data = g.__data__.data;

			return { name: data.name, level: data.level, label: g.getAttribute('aria-label'), runs: id ? runs : [[fill, 1]] };
		}),
	);
}

test('waits: the flame graph in colours of reasons, as wide as these', async () => {
	await withReport('waits', {}, async (page) => {
		await page.check('input[name=measure][value=cpu]', { force: true });
		assert.equal(await page.locator('#flame-legend [data-reason]').count(), 0);
		await page.check('#by-reason');
		// Reasons are parts of wall time.
		assert.ok(await page.isChecked('input[name=measure][value=wall]'));
		assert.ok(await page.isVisible('#flame-legend [data-reason]'));
		const drawn = await shades(page);
		const near = (name, want) => {
			const { runs } = drawn.find((f) => f.name === name);

			assert.deepEqual(runs.map(([colour]) => colour), want.map(([key]) => `var(--reason-${key})`), name);
			for (const [i, [, end]] of want.entries())
				assert.ok(Math.abs(runs[i][1] - end) < 0.004, `${name}: ${runs[i]}`);
		};

		near('fetch', [['on-cpu', 40 / 840], ['io', 740 / 840], ['fault', 1]]);
		near('compute', [['callees', 90 / 1290], ['on-cpu', 490 / 1290], ['gil', 1090 / 1290], ['runnable', 1]]);
		near('<gc generation 2>', [['gc', 1]]);
		near('busy', [['on-cpu', 500 / 560], ['unknown', 1]]);
		assert.equal(drawn.find((f) => f.name === 'all').runs[0][0], 'var(--reason-callees)');
		// Callees that are too narrow for a frame of their own show in their caller's.
		assert.equal(drawn.find((f) => f.name === 'run').runs.at(-1)[0], 'var(--reason-sleep)');
		assert.match(drawn.find((f) => f.name === 'busy').label, /: on CPU 89\.3 %, reason unknown 10\.7 %$/);

		// In words as well: the keyboard's way to `compute`
		await page.focus('#chart');
		for (const key of ['ArrowDown', 'ArrowDown'])
			await page.keyboard.press(key);
		assert.match(await page.textContent('#frame'), /^compute .*own 1\.20 s wall: GIL 50\.0 %, on CPU 33\.3 %, no CPU 16\.7 %/);
		// Zoomed, the legend is of what is drawn.
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => document.querySelectorAll('#path button').length === 3);
		assert.deepEqual(
			await page.$$eval('#flame-legend li', (list) => list.map((li) => li.textContent)),
			['on CPU 400 ms, 31.0 %', 'garbage collection 90.0 ms, 7.0 %', 'GIL 600 ms, 46.5 %', 'no CPU 200 ms, 15.5 %', 'callees below'],
		);
		await page.keyboard.press('Home');

		// What matches keeps its colours.
		await page.fill('#search', 'fetch');
		await page.waitForSelector('#chart g.frame.match');
		assert.match(await page.$eval('#chart g.match rect', (r) => getComputedStyle(r).fill), /^url\("#shade-/);
		// Another measure has no reasons.
		await page.check('input[name=measure][value=cpu]', { force: true });
		assert.ok(!(await page.isChecked('#by-reason')));
		assert.equal(await page.locator('#flame-legend [data-reason]').count(), 0);
		assert.ok((await shades(page)).every(({ runs }) => !/reason/.test(runs[0][0])));
	});
});

test('waits: where they were not measured, a line says why', async () => {
	for (const [name, why] of [
		['sampled', /^Not measured: no reasons were recorded\. It is measured/],
		['counted', /^Not measured: no reasons were recorded\./],
		['estimate', /^Not measured: no reasons were recorded\./],
		['random', /^Not measured: no reasons were recorded\./],
		['mixed', /^Not measured: no reasons were recorded\./],
	])
		await withReport(name, {}, async (page) => {
			assert.match(await page.textContent('#waits-note'), why);
			assert.ok(await page.isVisible('#waits-note'));
			for (const part of ['#waits-legend', '#waits-table', '#held', '#flame-legend [data-reason]', '#by-reason'])
				assert.ok(!(await page.isVisible(part)), `${part} in ${name}`);
		});
});

// What sticks out of its section, unless it is cut off there, or out of the window.
function overflowing(page) {
	return page.evaluate(() => {
		const wide = [...document.querySelectorAll('#waits, #flame')].flatMap((section) => {
			const { right } = section.getBoundingClientRect();
			const cut = (e) => e !== section && (getComputedStyle(e).overflowX !== 'visible' || cut(e.parentElement));

			return [...section.querySelectorAll('*')].filter(
				(e) => e.getBoundingClientRect().right > right + 0.5 && !cut(e.parentElement),
			);
		});
		const root = document.documentElement;

		return [...wide.map((e) => e.outerHTML.slice(0, 100)), ...(root.scrollWidth > innerWidth ? ['the page'] : [])];
	});
}

for (const colorScheme of ['light', 'dark'])
	test(`waits: fit into windows of any size, legible, ${colorScheme}`, async () => {
		for (const width of [390, 768, 1440])
			await withReport('waits', { colorScheme, viewport: { width, height: 900 } }, async (page) => {
				await page.check('#by-reason');
				await page.click('#waits-table [data-sort=cum]');
				await page.waitForSelector('#waits-table th[aria-sort=descending] [data-sort=cum]');
				await showAll(page);
				assert.deepEqual(await overflowing(page), [], `${width} px`);
				const reasons = await page.$$eval('#waits-legend [data-reason]', (list) =>
					list.map((li) => [li.dataset.reason, getComputedStyle(li.firstElementChild).backgroundColor]),
				);
				// Each reason has a name, and a colour of its own.
				assert.equal(reasons.length, 11);
				assert.equal(new Set(reasons.map(([, colour]) => colour)).size, 11);
				for (const [reason] of reasons)
					assert.ok((await contrast(page, `.part[data-reason=${reason}]`)) >= 4.5, `${reason}, ${colorScheme}`);
				for (const selector of ['#waits-legend li', '#waits-legend small', '#flame-legend small', '#waits th', '.sort', '#waits .link', '#waits .where', '#waits-note span'])
					assert.ok((await contrast(page, selector)) >= 4.5, `${selector}, ${colorScheme}`);
				await page.$eval('#waits', (e) => e.scrollIntoView());
				await picture(page, `waits-${colorScheme}-${width}`);
			});
	});

test('waits: sorted, continued and opened by keyboard', async () => {
	await withReport('waits', {}, async (page) => {
		const focused = () =>
			page.evaluate(() => [
				document.activeElement.dataset.sort,
				document.activeElement.querySelector('.name')?.textContent,
			]);

		await page.focus('#waits-table [data-sort=tot]');
		await page.keyboard.press('Tab');
		await page.keyboard.press('Enter');
		await page.waitForSelector('#waits-table th[aria-sort=descending] [data-sort=cum]');
		assert.equal((await focused())[0], 'cum');
		await page.keyboard.press('Tab');
		const [, first] = await focused();
		await page.keyboard.press('Enter');
		await page.waitForFunction((name) => document.querySelector('#details h3')?.textContent === name, first);
		await page.focus('#waits-table .more');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => document.querySelectorAll('#waits-table tbody tr').length > 20);
		// All are shown: the button is gone, and the first new row has the focus.
		assert.equal(
			await page.evaluate(() => [...document.querySelectorAll('#waits-table .link')].indexOf(document.activeElement)),
			20,
		);
	});
});

test('waits: printed with their bars, without buttons', async () => {
	await withReport('waits', { colorScheme: 'dark' }, async (page) => {
		await page.check('#by-reason');
		await page.emulateMedia({ media: 'print' });
		assert.ok(await page.isVisible('#waits-table .parts'));
		assert.ok(await page.isVisible('#waits-legend'));
		assert.ok(!(await page.isVisible('#waits-table .more')));
		assert.equal(await page.$eval('.part', (e) => getComputedStyle(e).printColorAdjust), 'exact');
		// On paper, whatever the screen's theme is.
		assert.equal(await page.$eval('.part', (e) => getComputedStyle(e).color), 'rgb(21, 23, 26)');
		assert.ok((await page.pdf()).length > 10000);
	});
});
