// SPDX-License-Identifier: BSD-2-Clause
// speedscope's own page, from npm, opens the profiler's speedscope and Chrome trace files. The tests
// read the result from its table as shown, and from the file that it exports.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { REPORTS, snapshot, test, useBrowser, withPage, world } from './harness.mjs';

// speedscope draws with WebGL, which is implemented in software on a machine without a graphics card.
useBrowser(
	{ reports: REPORTS, speedscope: 'node_modules/speedscope/dist/release' },
	'--use-angle=swiftshader',
	'--enable-unsafe-swiftshader',
);

// Opens a file, and passes the page and its export to the test.
async function open(file, body) {
	const { origin } = world.server;
	const profile = encodeURIComponent(`${origin}/reports/${file}`);

	await withPage(`${origin}/speedscope/index.html#profileURL=${profile}`, {}, async (page, seen) => {
		await page.getByText('Left Heavy').waitFor();
		const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Control+s')]);
		await body(page, JSON.parse(await readFile(await download.path(), 'utf8')), seen);
		for (const url of seen.requests)
			assert.ok(/^(blob|data):/.test(url) || url.startsWith(origin), url);
	});
}

// Replays an exported profile: maps the frames' identities to self time and to time on the stack,
// where recursion counts once.
function played(profile, keys) {
	const own = new Map();
	const total = new Map();
	const stack = [];
	let at = profile.startValue;

	assert.equal(profile.type, 'evented');
	for (const e of profile.events) {
		const passed = e.at - at;

		if (stack.length) {
			own.set(stack.at(-1), (own.get(stack.at(-1)) ?? 0) + passed);
			for (const frame of new Set(stack))
				total.set(frame, (total.get(frame) ?? 0) + passed);
		}
		at = e.at;
		if (e.type === 'O')
			stack.push(keys[e.frame]);
		else
			assert.equal(stack.pop(), keys[e.frame]);
	}
	assert.equal(stack.length, 0);
	return { own, total, end: at };
}

const frameKey = (name, file, line) => JSON.stringify([name, file, line]);

// The same from the snapshot, per function of a thread. Frames are name, file and line there.
function expected(json, thread, clock) {
	const own = new Map();
	const total = new Map();
	const path = [];
	const key = (i) => {
		const f = json.functions[json.nodes[i].func];
		return frameKey(f.qualname || f.name || '<unknown>', f.file ?? '', f.line);
	};

	json.nodes.forEach((n, i) => {
		path[i] = n.parent === null ? new Set() : new Set([...path[n.parent], key(i)]);
		if (n.thread !== thread || n.parent === null)
			return;
		own.set(key(i), (own.get(key(i)) ?? 0) + n.self[clock]);
		for (const k of path[i])
			total.set(k, (total.get(k) ?? 0) + n.self[clock]);
	});
	return { own, total };
}

const nonzero = (map) => new Map([...map].filter(([, v]) => v > 0).sort());

for (const name of ['random', 'whole', 'hostile'])
	test(`speedscope reads the figures of ${name}`, async () => {
		const json = snapshot(name);

		await open(`${name}.speedscope.json`, async (page, exported) => {
			const keys = exported.shared.frames.map((f) => frameKey(f.name, f.file ?? '', f.line ?? 0));
			const order = json.clock === 'cpu' ? ['cpu', 'wall'] : ['wall', 'cpu'];

			assert.equal(exported.profiles.length, 2 * json.threads.length);
			exported.profiles.forEach((profile, i) => {
				const want = expected(json, i % json.threads.length, order[Math.floor(i / json.threads.length)]);
				const have = played(profile, keys);

				assert.equal(profile.unit, 'nanoseconds');
				assert.deepEqual(nonzero(have.own), nonzero(want.own));
				assert.deepEqual(nonzero(have.total), nonzero(want.total));
			});
		});
	});

const NS = { ns: 1, 'µs': 1e3, ms: 1e6, s: 1e9 };

test('speedscope’s table shows the snapshot’s figures', async () => {
	const json = snapshot('whole');

	await open('whole.speedscope.json', async (page) => {
		await page.getByText('Sandwich').click();
		// The rows appear after the page has determined its size.
		await page.waitForFunction(() => /%\)\s+main$/m.test(document.body.innerText));
		const shown = await page.$$eval('tr', (rows) =>
			rows.map((r) => [...r.querySelectorAll('td')].map((c) => c.innerText.trim())).filter((c) => c.length >= 3),
		);
		const want = expected(json, 0, 'cpu');
		const near = (text, value, what) => {
			const [, n, unit] = /^([\d.]+)\s*(ns|µs|ms|s)\b/.exec(text);
			assert.ok(Math.abs(n * NS[unit] - value) <= 0.005 * NS[unit], `${what}: ${text} for ${value} ns`);
		};
		const sum = (thread, clock) =>
			[...expected(json, thread, clock).own.values()].reduce((a, b) => a + b, 0);

		// The list of profiles: number, name, weight.
		const profiles = shown.filter((cells) => /^\d+$/.test(cells[0]));
		assert.equal(profiles.length, 4);
		profiles.forEach(([, name, weight], i) => near(weight, sum(i % 2, i < 2 ? 'cpu' : 'wall'), name));

		const functions = shown.filter((cells) => !profiles.includes(cells));
		assert.deepEqual(
			functions.map((cells) => cells[2]).sort(),
			[...want.own.keys()].map((k) => JSON.parse(k)[0]).sort(),
		);
		for (const [total, own, name] of functions) {
			const key = [...want.own.keys()].find((k) => JSON.parse(k)[0] === name);
			near(total, want.total.get(key), name);
			near(own, want.own.get(key), name);
		}
	});
});

// In Chrome's format, a frame's name contains the slice's arguments, which include the expected time:
// the frame is compared with that, and that with the snapshot's contexts.
test('a reader of Chrome traces finds the snapshot’s contexts', async () => {
	const json = snapshot('whole');
	const cum = json.nodes.map((n) => ({ ...n.self }));

	for (let i = cum.length - 1; i >= 0; i--)
		for (const clock of ['cpu', 'wall'])
			if (json.nodes[i].parent !== null)
				cum[json.nodes[i].parent][clock] += cum[i][clock];
	await open('whole.trace.json', async (page, exported) => {
		const slices = exported.shared.frames.map((f) => {
			const [, name, args] = /^(.*?) (\{.*\})$/.exec(f.name);
			return { name, ...JSON.parse(args) };
		});
		const have = exported.profiles.map((profile, thread) => {
			const { own, total } = played(profile, slices.map((s, i) => i));

			assert.equal(profile.unit, 'microseconds');
			assert.match(profile.name, new RegExp(`tid ${json.threads[thread].tid}\\)`));
			return [...total.keys()].map((frame) => {
				assert.equal((own.get(frame) ?? 0) * 1000, slices[frame].self_cpu_ns);
				assert.equal(total.get(frame) * 1000, slices[frame].cpu_ns);
				return JSON.stringify(slices[frame]);
			}).sort();
		});
		const want = json.threads.map((t, thread) =>
			json.nodes
				.map((n, i) => [n, cum[i]])
				.filter(([n]) => n.thread === thread && n.parent !== null)
				.map(([n, c]) => {
					const f = json.functions[n.func];
					return JSON.stringify({
						name: f.qualname ?? f.name,
						file: f.file,
						line: f.line,
						calls: n.calls,
						self_cpu_ns: n.self.cpu,
						self_wall_ns: n.self.wall,
						cpu_ns: c.cpu,
						wall_ns: c.wall,
					});
				})
				.sort(),
		);

		assert.deepEqual(have, want);
	});
});
