// SPDX-License-Identifier: BSD-2-Clause
// A headless Chromium, a server for the files it opens, and checked pages: a test fails if its page
// requests anything else, writes an error to the console, or opens a dialog.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { after, before, test as nodeTest } from 'node:test';
import { chromium } from 'playwright-core';
import { left } from './patience.mjs';

export const REPORTS = process.env.PYPROF_REPORTS ?? 'reports';
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell';
export const REQUIRED = process.env.CI === 'true' || (process.env.PYPROF_TEST_REQUIRE ?? '').includes('tools');
const TYPES = {
	'.html': 'text/html; charset=utf-8',
	'.js': 'text/javascript',
	'.css': 'text/css',
	'.json': 'application/json',
	'.png': 'image/png',
	'.woff2': 'font/woff2',
	'.wasm': 'application/wasm',
};
// A browser without network access of its own: its background requests are disabled.
const QUIET = [
	'--no-sandbox',
	'--disable-quic',
	'--no-first-run',
	'--disable-background-networking',
	'--disable-component-update',
	'--disable-sync',
];

export const existing = () => existsSync(CHROMIUM);

export function launchOptions(more) {
	return { executablePath: CHROMIUM, args: [...QUIET, ...more], timeout: left() };
}

// Each has the whole time of the program.
export function test(name, body) {
	const skip = !existing() && !REQUIRED && `needs ${CHROMIUM}`;

	nodeTest(name, { skip, timeout: left() }, body);
}

// Serves the directories under /NAME/, and records the requests.
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

// more: flags of a browser of its own; without them, programs share that of with_browser.mjs.
export function useBrowser(directories, ...more) {
	const shared = more.length ? null : process.env.PYPROF_BROWSER;

	before(async () => {
		if (!existing() && !REQUIRED)
			return;
		world.server = await serve(directories);
		world.browser = shared
			? await chromium.connect(shared, { timeout: left() })
			: await chromium.launch(launchOptions(more.length ? more : ['--disable-gpu']));
	});
	after(async () => {
		await world.browser?.close();
		world.server?.close();
	});
}

// Opens a page, passes it to body, and then checks that it made no errors or requests.
export async function withPage(url, options, body) {
	const context = await world.browser.newContext({ viewport: { width: 1400, height: 1000 }, ...options });
	const page = await context.newPage();
	const wrong = [];
	const requests = [];

	page.setDefaultTimeout(left());
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

// A report of the profiler, loaded: it requested nothing but itself.
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

// The contrast between text and its background, as defined by WCAG.
export function contrast(page, selector) {
	return page.$eval(selector, (e) => {
		const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
		const rgb = (colour) => {
			canvas.clearRect(0, 0, 1, 1);
			canvas.fillStyle = colour;
			canvas.fillRect(0, 0, 1, 1);
			return [...canvas.getImageData(0, 0, 1, 1).data];
		};
		const light = (colour) => {
			const [r, g, b] = rgb(colour).map((v) => {
				const c = v / 255;
				return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
			});
			return 0.2126 * r + 0.7152 * g + 0.0722 * b;
		};
		let behind = e;
		while (rgb(getComputedStyle(behind).backgroundColor)[3] < 255)
			behind = behind.parentElement;
		const [a, b] = [getComputedStyle(e).color, getComputedStyle(behind).backgroundColor].map(light);
		return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
	});
}

// A screenshot for developers, saved beside the other results.
export async function picture(page, name) {
	const dir = join(REPORTS, '..', 'pictures');

	mkdirSync(dir, { recursive: true });
	await page.screenshot({ path: join(dir, `${name}.png`) });
}
