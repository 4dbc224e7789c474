// SPDX-License-Identifier: BSD-2-Clause
// The HTML report in a browser: it works with mouse and keyboard, makes no requests, and treats names as
// plain text.

import assert from 'node:assert/strict';
import { pathToFileURL } from 'node:url';
import { join, resolve } from 'node:path';
import { contexts, functions, ownInThread } from './figures.mjs';
import {
	contrast,
	picture,
	REPORTS,
	snapshot,
	test,
	useBrowser,
	withPage,
	withReport,
	world,
} from './harness.mjs';
import { left } from './patience.mjs';
import { exact, tableRows, topRows, sortBy, frames } from './report.mjs';

useBrowser({ reports: REPORTS });

test('sorts by any column, both ways', async () => {
	const { rows, ids } = functions(snapshot('many'));

	await withReport('many', {}, async (page) => {
		for (const field of ['cum_wall', 'tot_cpu', 'ncalls']) {
			await sortBy(page, field);
			await page.waitForSelector(`.tabulator-col[tabulator-field=${field}][aria-sort=descending]`);
			const down = (await topRows(page)).slice(0, 15).map((id) => rows.get(ids[id])[field]);
			const sorted = [...rows.values()].map((r) => r[field]).sort((a, b) => b - a);
			assert.deepEqual(down, sorted.slice(0, 15));

			await sortBy(page, field);
			await page.waitForSelector(`.tabulator-col[tabulator-field=${field}][aria-sort=ascending]`);
			const up = (await topRows(page)).slice(0, 15).map((id) => rows.get(ids[id])[field]);
			assert.deepEqual(up, sorted.reverse().slice(0, 15));
		}
	});
});

test('a regular expression filters the table and lights up the flame graph', async () => {
	const json = snapshot('many');
	const { rows, ids } = functions(json);

	await withReport('many', {}, async (page) => {
		const matching = [...rows.values()].filter((r) => /function_(17|18)\d /.test(`${r.label} ${r.f.file}:${r.f.line}`));

		await page.fill('#search', 'function_(17|18)\\d ');
		await page.waitForFunction((n) => document.getElementById('search-note').textContent.startsWith(`${n} functions`), matching.length);
		const shown = await tableRows(page);
		assert.deepEqual(
			[...shown.keys()].map((id) => rows.get(ids[id]).label).sort(),
			matching.map((r) => r.label).sort(),
		);
		for (const [path, matches] of await page.$$eval('#chart g.frame', (list) =>
			list.map((g) => [g.__data__.data.name, g.classList.contains('match')]),
		))
			assert.equal(matches, /function_(17|18)\d$/.test(path), path);

		// An invalid expression is searched as plain text; Esc ends the search.
		await page.fill('#search', 'function_17(');
		await page.waitForFunction(() => /no regular expression/.test(document.getElementById('search-note').textContent));
		assert.equal((await tableRows(page)).size, 0);
		await page.press('#search', 'Escape');
		await page.waitForFunction(() => document.getElementById('search-note').textContent === '');
		assert.ok((await topRows(page)).length > 10);
	});
});

test('callers and callees lead on, and Back leads back', async () => {
	await withReport('random', {}, async (page) => {
		const heading = () => page.textContent('#details h3');

		for (const [kind, other] of [
			['callers', 'callees'],
			['callees', 'callers'],
		]) {
			// A frame with such a link to another function.
			const from = await page.evaluate(async (k) => {
				for (let id = location.hash === '#f0' ? 1 : 0; ; id++) {
					const shown = new Promise((r) => addEventListener('hashchange', r, { once: true }));
					location.hash = `#f${id}`;
					await shown;
					const link = [...document.querySelectorAll(`#details .${k} tr[data-id]`)].find(
						(tr) => tr.querySelector('button') && tr.dataset.id !== String(id),
					);
					if (link)
						return { id, to: link.dataset.id };
				}
			}, kind);
			const name = await heading();

			await page.click(`#details .${kind} tr[data-id="${from.to}"] button`);
			await page.waitForSelector(`#details .${other} tr[data-id="${from.id}"]`);
			// Its row scrolls into view and is marked.
			await page.waitForSelector(`#row-${from.to}.selected`);
			await page.goBack();
			await page.waitForFunction((n) => document.querySelector('#details h3').textContent === n, name);
			assert.equal(await heading(), name);
		}
	});
});

test('the flame graph draws the snapshot’s contexts, on each clock', async () => {
	const json = snapshot('random');
	const label = (f) => f.qualname || f.name || '<unknown>';

	await withReport('random', { viewport: { width: 1800, height: 1000 } }, async (page) => {
		for (const clock of ['cpu', 'wall', 'calls']) {
			// Frames only show labels, and several functions can have the same label.
			const want = new Map();
			for (const [path, figures] of contexts(json)) {
				const names = path.slice(1).split(/(?<=\])\//).map((k) => {
					const [, , name, qualname] = JSON.parse(k);
					return label({ name, qualname });
				});
				const key = JSON.stringify(['all', ...names]);
				want.set(key, [...(want.get(key) ?? []), figures[clock]]);
			}

			await page.check(`input[name=measure][value=${clock}]`, { force: true });
			await page.waitForFunction(
				(c) => document.getElementById('frame').textContent.includes(c),
				clock === 'calls' ? 'calls,' : ` ${clock},`,
			);
			const drawn = await frames(page);
			const root = drawn.find((f) => f.path.length === 1);
			const top = [...want].filter(([k]) => JSON.parse(k).length === 2).flatMap(([, v]) => v);

			assert.equal(root.value, top.reduce((a, b) => a + b, 0));
			assert.ok(drawn.length > 20);
			for (const f of drawn.filter((d) => d !== root)) {
				assert.ok(want.get(JSON.stringify(f.path))?.includes(f.value), `${f.path}: ${f.value}`);
				assert.ok(Math.abs(f.width - (root.width * f.value) / root.value) < 0.01);
			}
			// No frame that is wide enough is missing.
			const wide = [...want.values()].flat().filter((v) => v / root.value > 2 / root.width);
			assert.ok(drawn.length - 1 >= wide.length);
		}
	});
});

test('the flame graph zooms by mouse and by keyboard, into what was too small to draw', async () => {
	await withReport('large', {}, async (page) => {
		const all = await frames(page);
		const below = ({ path }) => all.filter((f) => path.every((n, i) => f.path[i] === n));
		const children = (f) => below(f).filter((d) => d.path.length === f.path.length + 1).length;
		const target = all
			.filter((f) => f.path.length === 6 && children(f) > 1)
			.sort((a, b) => b.value - a.value)[0];

		await page.click(`#${target.id} rect`);
		await page.waitForFunction((n) => document.querySelectorAll('#path button').length === n, 6);
		const zoomed = await frames(page);
		const root = zoomed.find((f) => f.path.length === 1);
		assert.equal(root.value, target.value);
		assert.ok(zoomed.length > 2 * below(target).length, `${zoomed.length} frames, ${below(target).length} before`);
		assert.equal(await page.textContent('#details h3'), target.path.at(-1));

		await page.focus('#chart');
		const current = () =>
			page.$eval('#chart g.frame.current', (g) => ({ id: g.id, level: Number(g.getAttribute('aria-level')) }));
		assert.equal((await current()).level, 1);
		await page.keyboard.press('ArrowDown');
		const child = await current();
		assert.equal(child.level, 2);
		assert.equal(await page.getAttribute('#chart', 'aria-activedescendant'), child.id);
		await page.keyboard.press('ArrowRight');
		assert.notEqual((await current()).id, child.id);
		await page.keyboard.press('ArrowLeft');
		assert.deepEqual(await current(), child);
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => document.querySelectorAll('#path button').length === 7);
		await page.keyboard.press('Escape');
		await page.waitForFunction(() => document.querySelectorAll('#path button').length === 6);
		await page.keyboard.press('Home');
		await page.waitForFunction(() => document.querySelectorAll('#path button').length === 1);
		assert.equal((await frames(page)).find((f) => f.path.length === 1).value, all.find((f) => f.path.length === 1).value);

		// From a function's figures to its largest context
		await page.click('#details header button');
		await page.waitForFunction(() => document.querySelectorAll('#path button').length > 1);
	});
});

test('a recursion 20,000 deep is drawn, and can be followed', async () => {
	await withReport('deep', {}, async (page) => {
		const drawn = await frames(page);

		assert.equal(drawn.length, 250);
		await page.click(`#${drawn.at(-1).id} rect`);
		await page.waitForFunction(() => document.querySelector('#path li:nth-child(2)')?.textContent === '…');
		assert.equal((await frames(page)).length, 250);
	});
});

test('threads can be chosen', async () => {
	const json = snapshot('random');
	const { ids } = functions(json);

	await withReport('random', { viewport: { width: 1400, height: 2400 } }, async (page) => {
		assert.ok(json.threads.length > 1);
		for (let thread = 0; thread < json.threads.length; thread++) {
			await page.click('#none');
			await page.waitForFunction(() => document.querySelectorAll('#functions-table .tabulator-row').length === 0);
			await page
				.locator('#threads-table .tabulator-row')
				.filter({ has: page.locator(`[tabulator-field=tid] span:text-is("${json.threads[thread].tid}")`) })
				.locator('input')
				.check();
			await page.waitForFunction(() => document.getElementById('threads-chosen').textContent.startsWith('1 of'));
			await page.waitForSelector('#functions-table .tabulator-row');
			const want = ownInThread(json, thread);
			const shown = await tableRows(page);

			assert.equal(shown.size, [...want.values()].filter((r) => r.ncalls || r.tot_cpu || r.tot_wall).length);
			for (const [id, cells] of shown)
				for (const field of ['ncalls', 'tot_cpu', 'tot_wall'])
					assert.equal(exact(cells[field]), want.get(ids[id])[field], `${ids[id]} ${field}`);
		}
		await page.click('#all');
		await page.check('#by-thread');
		await page.waitForFunction(
			(n) => document.querySelectorAll('#chart g.frame[aria-level="2"]').length === n,
			json.threads.length,
		);
	});
});

test('works without a mouse', async () => {
	const { rows, ids } = functions(snapshot('random'));

	await withReport('random', {}, async (page) => {
		const order = [];

		await page.keyboard.press('/');
		assert.equal(await page.evaluate(() => document.activeElement.id), 'search');
		for (let i = 0; i < 40; i++) {
			await page.keyboard.press('Tab');
			const at = await page.evaluate(() => {
				const e = document.activeElement;
				return e.id || e.closest('[tabulator-field]')?.getAttribute('tabulator-field') || e.className || e.name || e.tagName;
			});
			if (!order.includes(at))
				order.push(at);
		}
		const parts = ['measure', 'by-thread', 'reset', 'chart', 'label', 'ncalls', 'tabulator-tableholder'];
		const found = parts.map((p) => order.indexOf(p));
		assert.ok(!found.includes(-1), `${parts} in ${order}`);
		assert.deepEqual([...found].sort((a, b) => a - b), found);

		// Sort by a heading, then move from row to row, and open one.
		await page.focus('#functions-table .tabulator-col[tabulator-field=ncalls]');
		await page.keyboard.press('Enter');
		await page.waitForSelector('.tabulator-col[tabulator-field=ncalls][aria-sort=descending]');
		await page.focus('#functions-table .tabulator-tableholder');
		await page.keyboard.press('End');
		await page.keyboard.press('Home');
		await page.keyboard.press('ArrowDown');
		// The second row of the table, after it has scrolled back.
		const second = await page.getAttribute('#functions-table .tabulator-tableholder', 'aria-activedescendant');
		await page.waitForSelector(`#${second}.current`);
		const most = [...rows.values()].map((r) => r.ncalls).sort((a, b) => b - a);
		assert.equal(rows.get(ids[Number(second.replace('row-', ''))]).ncalls, most[1]);
		await page.keyboard.press('Enter');
		await page.waitForSelector(`#${second}.selected`);
		await page.waitForSelector('#details h3');
	});
});

test('everything to press or fill in has a name', async () => {
	await withReport('random', {}, async (page) => {
		const nameless = await page.$$eval(
			'button, input, summary, a, [role=tree], [tabindex="0"]',
			(list) =>
				list
					.filter((e) => e.checkVisibility())
					.filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.[0]?.textContent.trim() || e.title))
					.map((e) => e.outerHTML.slice(0, 200)),
		);

		assert.deepEqual(nameless, []);
	});
});

test('dark and light, as the system says or the reader', async () => {
	const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
	const seen = {};

	for (const colorScheme of ['light', 'dark'])
		await withReport('extreme', { colorScheme }, async (page) => {
			seen[colorScheme] = await ground(page);
			await page.click('#functions-table .tabulator-row');
			await page.waitForSelector('#details .link');
			for (const selector of ['h2', '.where', '.hint', '#details td', '.link', '#banner', '.badge', '#frame', '#summary dt', '#lines th'])
				assert.ok((await contrast(page, selector)) >= 4.5, `${selector} in ${colorScheme}`);
			await picture(page, `extreme-${colorScheme}`);
			await page.click('#theme');
			seen[`${colorScheme}, switched`] = await ground(page);
		});
	assert.notEqual(seen.light, seen.dark);
	assert.equal(seen['light, switched'], seen.dark);
	assert.equal(seen['dark, switched'], seen.light);
});

test('says whether it is exact, and what is not', async () => {
	await withReport('random', {}, async (page) => {
		assert.equal(await page.textContent('#quality'), 'exact');
		assert.ok(!(await page.isVisible('#banner')));
		assert.ok(!(await page.isVisible('#overhead')), 'it is unknown');
		assert.match(await page.textContent('#lines'), /python3\.13\.0/);
		assert.match(await page.textContent('#lines'), /resultexact counts: 1234 calls and returns/);
	});
	await withReport('estimate', {}, async (page) => {
		assert.equal(await page.textContent('#overhead'), 'overhead 3.1 %');
		assert.match(await page.getAttribute('#overhead', 'title'), /^3\.1 % of the process's own CPU time/);
	});
	await withReport('extreme', {}, async (page) => {
		assert.equal(await page.textContent('#quality'), 'lower bounds');
		assert.match(await page.textContent('#banner'), /LOST 12 of 1246 events: counts are lower bounds/);
		// Figures beyond JavaScript's exact integers are marked.
		assert.match(await page.textContent('#summary'), /≈ 18,014,398,509,481,98\d/);
	});
	await withReport('counts', {}, async (page) => {
		assert.ok(await page.isChecked('input[name=measure][value=calls]'));
		assert.match(await page.textContent('#frame'), /all · 55 calls/);
		// There are no empty columns.
		assert.ok(await page.isVisible('.tabulator-col[tabulator-field=ncalls]'));
		for (const field of ['tot_cpu', 'cum_cpu', 'tot_wall', 'cum_wall', 'wait'])
			assert.ok(!(await page.isVisible(`.tabulator-col[tabulator-field=${field}]`)), field);
	});
	await withReport('empty', {}, async (page) => {
		assert.match(await page.textContent('#flame-note'), /Nothing was measured/);
	});
});

// If figures are estimates, the information about the profile mentions that, whatever the reason.
test('says when figures are estimates', async () => {
	const url = `${world.server.origin}/reports/random.html`;

	await withPage('about:blank', {}, async (page) => {
		await page.route(url, async (route) => {
			const response = await route.fetch();
			const body = (await response.text())
				.replaceAll('"exact":true', '"exact":false,"estimated":true')
				.replace('["result","exact', '["ESTIMATE","from windows');
			await route.fulfill({ response, body });
		});
		await page.goto(url);
		await page.waitForSelector('html[data-ready]');
		assert.equal(await page.textContent('#quality'), 'estimates');
		assert.match(await page.textContent('#notice'), /^ESTIMATE from windows/);
	});
});

test('hostile names are shown, and are only names', async () => {
	const json = snapshot('hostile');

	await withReport('hostile', { viewport: { width: 1400, height: 2400 } }, async (page, { wrong }) => {
		const shown = new Set(await page.$$eval('#functions-table .name', (list) => list.map((e) => e.textContent)));

		for (const name of [
			'two\\x0alines',
			'\\x1b[2J\\x1b]0;title\\x07',
			'right-to-left \\u{202e}txet',
			'\\u{2066}isolate\\u{2069}',
			'zero\\u{200b}width\\u{feff}',
			'surrogate \\u{dcff}',
			'tag \\u{e0041}',
			"<script>document.title='harmed'</script>",
			"</script><script>document.title='harmed'</script>",
			'<!-- <script>',
			`<img src=x onerror="document.title='harmed'">`,
			'&lt;b&gt; &#x202e; &amp;',
			'__proto__',
			'@DATA@',
			'<unknown>',
		])
			assert.ok(shown.has(name), `${name} is not shown`);
		assert.equal((await tableRows(page)).size, json.functions.length);

		// All objects are the page's own: no name of a function has created one.
		for (const row of await page.$$('#functions-table .tabulator-row')) {
			await row.click();
			await page.waitForSelector('#details h3');
		}
		const elements = await page.evaluate(() => ({
			scripts: document.scripts.length,
			foreign: document.querySelectorAll('img, iframe, object, embed, svg[onload], [onerror], base').length,
			title: document.title,
		}));
		assert.deepEqual({ ...elements, title: /harmed/.test(elements.title) }, { scripts: 1, foreign: 0, title: false });
		assert.ok(await page.$$eval('#functions-table .name', (list) => list.every((e) => e.textContent.length <= 201)));
		await picture(page, 'hostile');
		assert.deepEqual(wrong, []);
	});
});

test('injected content could neither run nor send anything', async () => {
	const url = `${world.server.origin}/reports/random.html`;

	await withPage(url, {}, async (page, { wrong }) => {
		await page.waitForSelector('html[data-ready]');
		const before = world.server.asked.length;
		const fetched = await page.evaluate(async () => {
			const script = document.createElement('script');
			script.textContent = 'document.title = "harmed"';
			document.body.append(script);
			const image = document.createElement('img');
			image.src = '/reports/leak.png';
			document.body.append(image);
			return fetch('/reports/leak').then(() => 'sent', () => 'refused');
		});

		assert.equal(fetched, 'refused');
		assert.doesNotMatch(await page.title(), /harmed/);
		assert.equal(world.server.asked.length, before);
		assert.ok(wrong.length >= 3 && wrong.every((w) => /Content Security Policy/.test(w)), wrong.join('\n'));
		wrong.length = 0;
	});
});

test('opens from a file as well, and prints', async () => {
	await withPage(pathToFileURL(resolve(join(REPORTS, 'random.html'))).href, {}, async (page, { requests }) => {
		await page.waitForSelector('html[data-ready]');
		assert.equal(requests.length, 1);
		const pdf = await page.pdf();
		assert.ok(pdf.length > 10000);
		await page.emulateMedia({ media: 'print' });
		const json = snapshot('random');
		const most = [...functions(json).rows.values()].sort((a, b) => b.tot_cpu - a.tot_cpu)[0];
		const line = await page.textContent('#printed tr');
		assert.ok(line.includes(most.f.qualname ?? most.f.name), line);
		assert.equal(await page.textContent('#printed-head'), 'ncallstottime cpucumtime cputottime wallcumtime wallwaitfunction');
		assert.ok(await page.isVisible('#printed'));
		assert.ok(!(await page.isVisible('#functions-table')));
	});
});

// CPU seconds of the page's main thread, which depend less on other work of this machine than elapsed
// time does
async function cpu(devtools) {
	const { metrics } = await devtools.send('Performance.getMetrics');

	return metrics.find((m) => m.name === 'TaskDuration').value;
}

// A page whose main thread's CPU time is known
async function timed(body) {
	const context = await world.browser.newContext({ viewport: { width: 1400, height: 1000 } });
	const page = await context.newPage();
	const devtools = await context.newCDPSession(page);

	page.setDefaultTimeout(left());
	await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
	try {
		return await body(page, devtools);
	} finally {
		await context.close();
	}
}

// The CPU time of opening a report of that name
function opening(t, name) {
	return timed(async (page, devtools) => {
		await page.goto(`${world.server.origin}/reports/${name}.html`);
		await page.waitForSelector('html[data-ready]');
		const open = await cpu(devtools);
		const wall = Number(await page.getAttribute('html', 'data-ready')) / 1000;
		if (name === 'large')
			await picture(page, 'large');
		t.diagnostic(`${name}: ready after ${wall.toFixed(2)} s, ${open.toFixed(2)} s of CPU`);
		return open;
	});
}

const ROUNDS = 8;

// Beside JSON.parse of a profile of that size in the same browser: a machine that parses it in 0.15 s
// opens the report in less than 3 s. Both are CPU time, measured in turn, of which some 10 were seen. Where the machine
// gives one of them a slower CPU, a round is wrong by a factor of two, in less than one of 10 cases; all of them, once in
// 10^8.
test('100,000 contexts open as fast as their JSON is parsed 20 times', (t) =>
	timed(async (page, devtools) => {
		const parsing = async () => {
			const before = await cpu(devtools);

			await page.evaluate(() => [1, 2].map(() => JSON.parse(self.text).nodes.length));
			return ((await cpu(devtools)) - before) / 2;
		};

		// From a page without a policy of its own
		await page.evaluate(async (url) => { self.text = await (await fetch(url)).text(); }, `${world.server.origin}/reports/large.json`);
		for (const name of ['large', 'large_counters', 'large_waits', 'wide']) {
			let least = Infinity;

			for (let round = 0; round < ROUNDS && least >= 20; round++) {
				const open = await opening(t, name);

				least = Math.min(least, open / (await parsing()));
			}
			t.diagnostic(`${name}: as ${least.toFixed(1)} times JSON.parse`);
			assert.ok(least < 20, `${name}: ${least} times JSON.parse`);
		}
	}),
);
