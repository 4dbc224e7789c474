// SPDX-License-Identifier: BSD-2-Clause
// A headless Chromium, a server for the files it opens, and pages that must behave: whatever they
// ask for besides themselves, complain of on the console, or pop up, fails the test.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { after, before, test as nodeTest } from 'node:test';
import { chromium } from 'playwright-core';

export const REPORTS = process.env.PYPROF_REPORTS ?? 'reports';
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const REQUIRED = process.env.CI === 'true' || (process.env.PYPROF_TEST_REQUIRE ?? '').includes('tools');
const TYPES = {
	'.html': 'text/html; charset=utf-8',
	'.js': 'text/javascript',
	'.css': 'text/css',
	'.json': 'application/json',
	'.png': 'image/png',
	'.woff2': 'font/woff2',
	'.wasm': 'application/wasm',
};
// A browser that talks to nobody: what it would do on its own is switched off.
const QUIET = [
	'--no-sandbox',
	'--disable-quic',
	'--no-first-run',
	'--disable-background-networking',
	'--disable-component-update',
	'--disable-sync',
];

// Every test has a minute or two, however busy the machine is; nothing waits for less.
export function test(name, body) {
	const skip = !existsSync(CHROMIUM) && !REQUIRED && `needs ${CHROMIUM}`;

	nodeTest(name, { skip, timeout: 120000 }, body);
}

// Serves the directories under /NAME/, remembers what it was asked for.
export async function serve(directories) {
	const asked = [];
	const server = createServer((request, response) => {
		const [, name, ...rest] = decodeURIComponent(new URL(request.url, 'http://x').pathname).split('/');
		const file = directories[name] && join(directories[name], normalize(`/${rest.join('/')}`));

		asked.push(request.url);
		if (!file || !existsSync(file)) {
			response.writeHead(404).end();
			return;
		}
		response.writeHead(200, {
			'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
			'access-control-allow-origin': '*',
		});
		response.end(readFileSync(file));
	});

	await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
	return { asked, origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

export const world = {};

export function useBrowser(directories, ...more) {
	before(async () => {
		if (!existsSync(CHROMIUM) && !REQUIRED)
			return;
		world.server = await serve(directories);
		world.browser = await chromium.launch({
			executablePath: CHROMIUM,
			args: [...QUIET, ...more],
			timeout: 120000,
		});
	});
	after(async () => {
		await world.browser?.close();
		world.server?.close();
	});
}

// Open a page on its own and hand it to body; afterwards see that it behaved.
export async function withPage(url, options, body) {
	const context = await world.browser.newContext({ viewport: { width: 1400, height: 1000 }, ...options });
	const page = await context.newPage();
	const wrong = [];
	const requests = [];

	page.setDefaultTimeout(90000);
	page.on('console', (m) => ['error', 'warning'].includes(m.type()) && wrong.push(m.text()));
	page.on('pageerror', (e) => wrong.push(String(e.stack)));
	page.on('dialog', (d) => wrong.push(`a dialog: ${d.message()}`) && d.dismiss());
	context.on('page', (p) => wrong.push(`a window: ${p.url()}`));
	page.on('request', (r) => requests.push(r.url()));
	try {
		await page.goto(url);
		await body(page, { wrong, requests, context });
		assert.deepEqual(wrong, []);
	} finally {
		await context.close();
	}
}

// A report of ours, open and ready: it asked for nothing but itself.
export async function withReport(name, options, body) {
	const url = `${world.server.origin}/reports/${name}.html`;

	await withPage(url, options, async (page, seen) => {
		await page.waitForSelector('html[data-ready]');
		await body(page, seen);
		const asked = seen.requests.filter((r) => !r.startsWith('data:') && r.split('#')[0] !== url);
		assert.deepEqual(asked, []);
	});
}

export function snapshot(name) {
	return JSON.parse(readFileSync(join(REPORTS, `${name}.json`), 'utf8'));
}

// For people to look at, beside the other results.
export async function picture(page, name) {
	const dir = join(REPORTS, '..', 'pictures');

	mkdirSync(dir, { recursive: true });
	await page.screenshot({ path: join(dir, `${name}.png`) });
}
