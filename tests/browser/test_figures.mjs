// SPDX-License-Identifier: BSD-2-Clause
// The HTML report in a browser: it shows the measured figures.

import assert from 'node:assert/strict';
import {
	contexts,
	edgeCounters,
	edges,
	errors,
	functions,
	identity,
	ownInThread,
	threadCounter,
} from './figures.mjs';
import { picture, REPORTS, snapshot, test, useBrowser, withReport } from './harness.mjs';
import {
	FIELDS,
	exact,
	tableRows,
	showColumns,
	topRows,
	frames,
	COUNTERS,
	choose,
	inView,
	exactCells,
} from './report.mjs';

useBrowser({ reports: REPORTS });

test('every figure in the table is the snapshot’s', async () => {
	const { rows, ids } = functions(snapshot('random'));

	await withReport('random', { viewport: { width: 2600, height: 900 } }, async (page) => {
		await showColumns(page, FIELDS);
		const shown = await tableRows(page);
		const wanted = [...rows.values()].filter((r) => r.ncalls || r.cum_cpu || r.cum_wall);

		assert.equal(shown.size, wanted.length);
		for (const [id, cells] of shown) {
			const want = rows.get(ids[id]);
			for (const field of FIELDS)
				assert.equal(exact(cells[field]), want[field], `${ids[id]} ${field}`);
		}
	});
});

test('a function’s figures, callers and callees are the snapshot’s, at 20,000 contexts', async () => {
	const json = snapshot('many');
	const { rows, ids } = functions(json);
	const all = edges(json);
	const index = new Map(ids.map((key, id) => [key, id]));

	await withReport('many', {}, async (page) => {
		for (let id = 3; id < ids.length; id += 499) {
			await page.evaluate((i) => (location.hash = `#f${i}`), id);
			await page.waitForFunction(
				(label) => document.querySelector('#details h3')?.textContent === label,
				rows.get(ids[id]).label,
			);
			const shown = await page.$eval('#details', (box) => ({
				figures: [...box.querySelectorAll('.figures tbody tr')]
					.slice(0, 2)
					.map((tr) => [...tr.querySelectorAll('td')].map((td) => td.title)),
				...Object.fromEntries(
					['callers', 'callees'].map((kind) => {
						for (const b of box.querySelectorAll(`.${kind} > button`))
							b.click();
						return [
							kind,
							[...box.querySelectorAll(`.${kind} tbody tr`)].map((tr) => [
								Number(tr.dataset.id),
								...[...tr.querySelectorAll('td')].slice(1).map((td) => td.title),
							]),
						];
					}),
				),
			}));
			const want = rows.get(ids[id]);
			const edge = (e, end) => [e[end] === null ? -1 : index.get(e[end]), e.ncalls, e.tot_cpu, e.cum_cpu];
			const byId = (a, b) => a[0] - b[0];
			const read = (list) => list.map(([i, ...cells]) => [i, ...cells.map(exact)]).sort(byId);

			assert.deepEqual(shown.figures.map((cells) => cells.map(exact)), [
				[want.tot_cpu, want.tot_wall],
				[want.cum_cpu, want.cum_wall],
			]);
			assert.deepEqual(
				read(shown.callers),
				all.filter((e) => e.callee === ids[id]).map((e) => edge(e, 'caller')).sort(byId),
			);
			assert.deepEqual(
				read(shown.callees),
				all.filter((e) => e.caller === ids[id]).map((e) => edge(e, 'callee')).sort(byId),
			);
		}
	});
});

test('resources: every figure in the table is the snapshot’s, self and cumulative', async () => {
	const { rows, ids } = functions(snapshot('counters'));
	const fields = COUNTERS.flatMap((m) => [`tot_counters_${m}`, `cum_counters_${m}`]);

	await withReport('counters', { viewport: { width: 3200, height: 900 } }, async (page) => {
		await showColumns(page, fields);
		const shown = await tableRows(page);

		assert.ok(shown.size > 20);
		for (const [id, cells] of shown)
			for (const field of fields)
				assert.equal(exact(cells[field]), rows.get(ids[id])[field], `${ids[id]} ${field}`);
	});
});

test('resources: chosen as measures, they sort the table and are drawn', async () => {
	const json = snapshot('counters');
	const { rows, ids } = functions(json);

	await withReport('counters', {}, async (page) => {
		for (const counter of COUNTERS) {
			const field = `tot_counters_${counter}`;
			const sorted = [...rows.values()].map((r) => r[field]).sort((a, b) => b - a);

			await choose(page, `counters_${counter}`);
			for (const shown of [field, `cum_counters_${counter}`]) {
				assert.ok(await page.isChecked(`#columns input[value=${shown}]`), shown);
				await inView(page, shown);
			}
			const top = (await topRows(page)).slice(0, 8).map((id) => rows.get(ids[id])[field]);
			assert.deepEqual(top, sorted.slice(0, 8));
			const root = (await frames(page)).find((f) => f.path.length === 1);
			assert.equal(root.value, json.nodes.reduce((n, c) => n + (c.func === null ? 0 : c.counters[counter]), 0));
		}
		assert.match(await page.textContent('#frame'), /^all · [\d.]+ [kM]?B written, 100.0 %/);
		// A selected function scrolls into view, and the columns stay.
		await page.evaluate(() => (location.hash = '#f3'));
		await page.waitForSelector('#row-3.selected');
		await inView(page, 'cum_counters_wbytes');
	});
});

test('resources: those of a function, its callers and callees, and of threads', async () => {
	const json = snapshot('counters');
	const { rows, ids } = functions(json);
	const index = new Map(ids.map((key, id) => [key, id]));

	await withReport('counters', { viewport: { width: 1800, height: 1000 } }, async (page) => {
		for (const counter of ['minflt', 'wbytes']) {
			const all = [...edgeCounters(json, counter)].map(([key, n]) => [...JSON.parse(key), n]);
			await choose(page, `counters_${counter}`);
			for (const [id, key] of ids.entries()) {
				await page.evaluate((i) => (location.hash = `#f${i}`), id);
				await page.waitForFunction((i) => document.querySelector(`#row-${i}.selected`), id);
				const figures = await exactCells(page, '#details [aria-label=resources] tbody tr');
				assert.deepEqual(
					figures.map(({ cells }) => cells.map(exact)),
					COUNTERS.map((m) => [rows.get(key)[`tot_counters_${m}`], rows.get(key)[`cum_counters_${m}`]]),
				);
				for (const [kind, at, other] of [
					['callers', 1, 0],
					['callees', 0, 1],
				]) {
					const shown = await exactCells(page, `#details .${kind} tbody tr`);
					const want = all.filter((e) => e[at] === key);
					const byId = (a, b) => a[0] - b[0];
					assert.deepEqual(
						shown.map((tr) => [Number(tr.id), ...tr.cells.slice(1).map(exact)]).sort(byId),
						want.map((e) => [e[other] === null ? -1 : index.get(e[other]), e[2].self, e[2].cum]).sort(byId),
					);
				}
			}
		}
		for (const [thread, { tid }] of json.threads.entries()) {
			const cells = await page
				.locator('#threads-table .tabulator-row')
				.filter({ has: page.locator(`[tabulator-field=tid] span:text-is("${tid}")`) })
				.evaluate((row, counters) => counters.map((m) => row.querySelector(`[tabulator-field=counters_${m}] span`).title), COUNTERS);
			assert.deepEqual(cells.map(exact), COUNTERS.map((m) => threadCounter(json, thread, m)));
		}
	});
});

test('quantiles of durations are the snapshot’s, where all threads are selected', async () => {
	const json = snapshot('durations');
	const { ids } = functions(json);
	const fields = ['cpu', 'wall'].flatMap((clock) => ['p50', 'p90', 'p99'].map((p) => `${p}_${clock}`));
	const byKey = new Map(json.functions.map((f) => [identity(f), f]));

	await withReport('durations', { viewport: { width: 2600, height: 900 } }, async (page) => {
		await showColumns(page, fields);
		const shown = await tableRows(page);
		let known = 0;

		assert.ok(shown.size > 2);
		for (const [id, cells] of shown)
			for (const field of fields) {
				const [p, clock] = field.split('_');
				const want = byKey.get(ids[id]).durations?.[clock][p] ?? null;

				assert.equal(/^\d/.test(cells[field]) ? exact(cells[field]) : null, want, `${ids[id]} ${field}`);
				known += want !== null;
			}
		assert.ok(known > 10);
	});
});

// "1,234 ns ± 56 ns (standard error), 5.6 %": returns the error, null if there is none.
const errorIn = (text) => (/± /.test(text) ? Number(/± ([\d,]+)/.exec(text)[1].replaceAll(',', '')) : null);

test('estimates carry their standard errors, where they are known', async () => {
	const json = snapshot('estimate');
	const { rows, ids } = functions(json);
	const known = errors(json);
	const want = (id, field) => {
		const error = known.get(ids[id])[field];

		return error === null ? null : Math.round(error);
	};

	await withReport('estimate', { viewport: { width: 2600, height: 900 } }, async (page) => {
		const fields = FIELDS.filter((f) => f !== 'pcalls');
		const shown = await tableRows(page);
		const seen = { known: 0, unknown: 0 };

		assert.equal(await page.textContent('#quality'), 'estimates');
		for (const [id, cells] of shown)
			for (const field of fields) {
				assert.equal(exact(cells[field]), rows.get(ids[id])[field]);
				assert.equal(errorIn(cells[field]), want(id, field), `${ids[id]} ${field}`);
				seen[want(id, field) === null ? 'unknown' : 'known']++;
			}
		assert.ok(seen.known > 20 && seen.unknown > 5);
		assert.match(await page.textContent('#functions-table .tabulator-row'), /±[\d.]+ (ns|µs|ms|s)/);

		for (const id of [0, 1, 5]) {
			await page.evaluate((i) => (location.hash = `#f${i}`), id);
			await page.waitForFunction((i) => document.querySelector(`#row-${i}.selected`), id);
			const [tot, cum] = await exactCells(page, '#details [aria-label=times] tbody tr');
			assert.deepEqual(tot.cells.map(errorIn), [want(id, 'tot_cpu'), want(id, 'tot_wall')]);
			assert.deepEqual(cum.cells.map(errorIn), [want(id, 'cum_cpu'), want(id, 'cum_wall')]);
		}

		// Errors are for all threads together: for a selection of threads they are unknown.
		assert.ok(json.threads.length > 1);
		await page.locator('#threads-table .tabulator-row input').first().uncheck();
		await page.waitForFunction(() => !document.getElementById('threads-chosen').textContent.startsWith('all'));
		await page.waitForFunction(() => !document.querySelector('#functions-table .error, #details .error'));
		for (const cells of (await tableRows(page)).values())
			for (const field of fields)
				assert.equal(errorIn(cells[field]), null);
	});
	await withReport('folded', {}, async (page) => {
		assert.equal(await page.textContent('#quality'), 'estimates');
		assert.ok((await tableRows(page)).size > 5);
		assert.doesNotMatch(await page.textContent('#functions'), /±/);
	});
});

// "× 36.7 per call ±0.52", and the figures behind it
const perCallText = ({ calls_per_call: n, calls_per_call_error: error }) =>
	n === undefined ? '' : `× ${Number(n.toPrecision(3))} per call${error ? ` ±${Number(error.toPrecision(2))}` : ''}`;

// Of each callee, or caller: the text beside its name.
const perCallTexts = (page, kind) =>
	page.$$eval(`#details .${kind} tbody tr`, (rows) =>
		rows.map((tr) => [Number(tr.dataset.id), tr.querySelector('.per-call')?.textContent ?? '']).sort(),
	);

test('calls per call of the caller, exact and from whole calls in windows', async () => {
	const json = snapshot('windowed');
	const { ids } = functions(json);
	const known = { exact: 0, estimated: 0, unknown: 0 };

	for (const width of [1400, 390])
		await withReport('windowed', { viewport: { width, height: 900 } }, async (page) => {
			for (const id of ids.keys()) {
				await page.evaluate((i) => (location.hash = `#f${i}`), id);
				await page.waitForFunction((i) => document.querySelector(`#row-${i}.selected`), id);
				for (const [kind, end, other] of [
					['callers', 'callee', 'caller'],
					['callees', 'caller', 'callee'],
				]) {
					const want = json.edges
						.filter((e) => e[end] === id)
						.map((e) => [e[other] ?? -1, perCallText(e)])
						.sort();

					assert.deepEqual(await perCallTexts(page, kind), want, `${kind} of ${ids[id]}`);
					for (const [, text] of want)
						known[text ? (/±/.test(text) ? 'estimated' : 'exact') : 'unknown']++;
				}
				// Nothing is wider than the box, whatever the names.
				assert.ok(await page.$eval('#details', (e) => e.scrollWidth <= e.clientWidth), `${ids[id]} at ${width} px`);
				assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
				const cut = await page.$$eval('#details :is(.per-call, .per-call .error)', (list) =>
					list.filter((e) => e.getBoundingClientRect().right > e.closest('td').getBoundingClientRect().right + 0.5),
				);
				assert.equal(cut.length, 0, `${ids[id]} at ${width} px`);
			}
			await page.evaluate((i) => (location.hash = `#f${i}`), ids.findIndex((key) => key.includes('load_item')));
			await page.locator('#details .callees').scrollIntoViewIfNeeded();
			await picture(page, `per-call-${width}`);
		});
	assert.ok(known.exact && known.estimated && known.unknown, JSON.stringify(known));
});

test('calls per call: of the chosen threads, and of contexts', async () => {
	const json = snapshot('windowed');
	const item = json.nodes.findIndex((n) => n.thread === 1 && json.functions[n.func]?.name === 'load_item');
	const all = json.nodes[item].parent;

	await withReport('windowed', {}, async (page) => {
		// One thread alone: its contexts are those of the tree.
		for (const i of [0, 2])
			await page.locator('#threads-table .tabulator-row input').nth(i).uncheck();
		await page.waitForFunction(() => document.getElementById('threads-chosen').textContent === '1 of 3');
		await page.evaluate((i) => (location.hash = `#f${i}`), json.nodes[all].func);
		await page.waitForSelector('#details .callees .per-call');
		const shown = await perCallTexts(page, 'callees');

		assert.deepEqual(
			shown.find(([id]) => id === json.nodes[item].func),
			[json.nodes[item].func, perCallText(json.nodes[item])],
		);
		await page.click('#details .callees tr .link');
		await page.click('#details header button');
		await page.waitForFunction(() => /load_item/.test(document.getElementById('frame').textContent));
		assert.ok((await page.textContent('#frame')).includes(` calls here, ${perCallText(json.nodes[item])}`));
		// Below a function stand its callers.
		await page.check('#inverted');
		assert.doesNotMatch(await page.textContent('#frame'), /per call/);
	});
});

test('samples: CPU time with its error, and nothing of what is not seen', async () => {
	const json = snapshot('sampled');
	const { rows, ids } = functions(json);
	const known = errors(json);

	await withReport('sampled', {}, async (page) => {
		const shown = await tableRows(page);

		assert.equal(shown.size, rows.size);
		for (const [id, cells] of shown) {
			assert.deepEqual(Object.keys(cells).sort(), ['cum_cpu', 'label', 'share', 'tot_cpu', 'where']);
			assert.equal(exact(cells.tot_cpu), rows.get(ids[id]).tot_cpu);
			assert.equal(errorIn(cells.tot_cpu), Math.round(known.get(ids[id]).tot_cpu));
			assert.equal(errorIn(cells.cum_cpu), null);
		}
		assert.deepEqual(
			await page.$$eval('input[name=measure]', (list) => list.map((r) => r.value)),
			['cpu'],
		);
		for (const [name, expected] of [
			['fib', ['unknown 5.0 % 40.4 ms±20 ms', 'line 11 25.0 % 202 ms±45 ms', 'line 12 70.0 % 566 ms±76 ms']],
			['main', []],
		]) {
			const id = ids.findIndex((key) => key.includes(name));

			await page.evaluate((i) => (location.hash = `#f${i}`), id);
			await page.waitForFunction((i) => document.querySelector(`#row-${i}.selected`), id);
			assert.deepEqual(
				await page.$$eval('#details .lines tbody tr', (rows) =>
					rows.map((r) => [...r.cells].map((c) => c.textContent).join(' ')),
				),
				expected,
			);
		}
		assert.match(await page.textContent('#notice'), /^ESTIMATE sampled at 99 Hz/);
		assert.doesNotMatch(await page.textContent('#summary'), /calls|wall|waiting/);
		assert.ok((await frames(page)).length > 3);
	});
});

// As the page writes it
const share = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`;

test('counts alone: calls, callers and callees, and no times', async () => {
	const json = snapshot('counted');
	const { rows, ids } = functions(json);
	const all = edges(json);
	const index = new Map(ids.map((key, id) => [key, id]));

	await withReport('counted', {}, async (page) => {
		await showColumns(page, ['ncalls', 'pcalls']);
		const shown = await tableRows(page);

		assert.equal(shown.size, rows.size);
		for (const [id, cells] of shown) {
			assert.deepEqual(Object.keys(cells).sort(), ['label', 'ncalls', 'pcalls', 'share', 'where']);
			assert.equal(cells.share, share(rows.get(ids[id]).ncalls, [...rows.values()].reduce((n, r) => n + r.ncalls, 0)));
			for (const field of ['ncalls', 'pcalls'])
				assert.equal(exact(cells[field]), rows.get(ids[id])[field], `${ids[id]} ${field}`);
		}
		for (const [id, key] of ids.entries()) {
			await page.evaluate((i) => (location.hash = `#f${i}`), id);
			await page.waitForFunction((i) => document.querySelector(`#row-${i}.selected`), id);
			for (const [kind, end, other] of [
				['callers', 'callee', 'caller'],
				['callees', 'caller', 'callee'],
			]) {
				const tr = await exactCells(page, `#details .${kind} tbody tr`);
				assert.deepEqual(
					tr.map((t) => [Number(t.id), ...t.cells.map(exact)]).sort(),
					all
						.filter((e) => e[end] === key)
						.map((e) => [e[other] === null ? -1 : index.get(e[other]), e.ncalls])
						.sort(),
				);
			}
			assert.ok(!(await page.isVisible('#details .figures')));
		}
		assert.deepEqual(
			await page.$$eval('input[name=measure]', (list) => list.map((r) => r.value)),
			['calls'],
		);
		assert.deepEqual(
			await page.$$eval('#threads-table .tabulator-col[tabulator-field]', (list) =>
				list.map((c) => c.getAttribute('tabulator-field')),
			),
			['id', 'label', 'pid', 'tid', 'calls'],
		);
		assert.match(await page.textContent('#flame-note'), /in mode count, calls are known by caller and callee/);
		assert.ok(!(await page.isVisible('#chart')) && !(await page.isVisible('#reset')));
		for (const part of ['#summary', '#functions .beside', '#columns', '#threads-table'])
			assert.doesNotMatch(await page.textContent(part), /tottime|cumtime|cpu|wall|timeline/i, part);

		await page.fill('#search', 'fib');
		await page.waitForFunction(() => /^1 functions, \d/.test(document.getElementById('search-note').textContent));
	});
});

test('counted and traced processes in one report: only contexts are drawn', async () => {
	const json = snapshot('mixed');
	const { rows, ids } = functions(json);
	const traced = json.threads.findIndex((t) => t.pid === 7);

	await withReport('mixed', {}, async (page) => {
		for (const [id, cells] of await tableRows(page))
			for (const field of ['ncalls', 'tot_cpu', 'cum_wall'])
				assert.equal(exact(cells[field]), rows.get(ids[id])[field]);
		await choose(page, 'calls');
		const root = (await frames(page)).find((f) => f.path.length === 1);
		assert.equal(root.value, [...ownInThread(json, traced).values()].reduce((n, r) => n + r.ncalls, 0));
		assert.match(await page.textContent('#flame-note'), /counted/);
	});
});
