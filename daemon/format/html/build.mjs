// SPDX-License-Identifier: BSD-2-Clause
// Bundles each page into one file: the report and the report of slow calls, cut where the data goes
// (page.head, page.tail, slow.head, slow.tail), and the live page (live.page, live.policy). Run beside
// node_modules/ by the Makefile.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';

async function bundle(entry, ends, options) {
	const result = await build({
		entryPoints: [entry],
		bundle: true,
		minify: true,
		charset: 'ascii',
		legalComments: 'none', // whole licences are in the page, see licences()
		metafile: true,
		write: false,
		outdir: 'out',
		logLevel: 'warning',
		...options,
	});

	return {
		text: result.outputFiles.find((f) => f.path.endsWith(ends)).text,
		inputs: Object.keys(result.metafile.inputs),
	};
}

function packageOf(input) {
	for (let dir = dirname(input); dir.includes('node_modules'); dir = dirname(dir))
		if (existsSync(join(dir, 'package.json'))) {
			const { name, version, license } = JSON.parse(readFileSync(join(dir, 'package.json')));
			if (name && version)
				return { dir, name, version, license };
		}
	return null;
}

function licenceText(dir) {
	const name = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'LICENCE'].find((n) => existsSync(join(dir, n)));

	if (!name)
		throw new Error(`${dir} has no licence text`);
	return readFileSync(join(dir, name), 'utf8').trim();
}

// What is bundled, under which licence, with the whole text: part of the page itself.
function licences(inputs) {
	const packages = new Map();

	for (const input of inputs.filter((i) => i.includes('node_modules'))) {
		const p = packageOf(input);
		if (p)
			packages.set(p.name, p);
	}
	return [...packages.values()]
		.sort((a, b) => (a.name < b.name ? -1 : 1))
		.map((p) => `${p.name} ${p.version} (${p.license})\n\n${licenceText(p.dir)}\n`)
		.join(`\n${'-'.repeat(70)}\n\n`);
}

function escapeHtml(s) {
	return s.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

function hash(s) {
	return `'sha256-${createHash('sha256').update(s).digest('base64')}'`;
}

// Only this very script and style may run, and nothing may be fetched from anywhere, except by the live
// page from its own server.
function policyOf(script, style, connect) {
	return [
		"default-src 'none'",
		`script-src ${hash(script)}`,
		`style-src ${hash(style)}`,
		'img-src data:',
		...(connect ? [`connect-src ${connect}`] : []),
		"base-uri 'none'",
		"form-action 'none'",
	].join('; ');
}

// A template with its script and the common style. A reference means nothing in a script or style, and
// both are hashed: they are ASCII as it is.
async function makePage(name, entry, connect) {
	// d3-flame-graph imports its own style, which page.css has already.
	const script = await bundle(entry, '.js', {
		format: 'esm',
		target: 'es2022',
		loader: { '.css': 'empty' },
	});
	const style = await bundle('page.css', '.css', {});
	const notices = licences([...script.inputs, ...style.inputs]);
	const policy = policyOf(script.text, style.text, connect);
	const parts = {
		'@POLICY@': policy,
		'@STYLE@': style.text,
		'@LICENCES@': escapeHtml(notices),
		'@SCRIPT@': script.text,
	};

	if (/[^\x00-\x7f]/.test(script.text + style.text) || /<\/(script|style)/i.test(script.text + style.text))
		throw new Error(`${name} cannot be put together`);
	const text = readFileSync(`${name}.html`, 'utf8')
		.replace(/@HEAD@/g, () => readFileSync('head.html', 'utf8').trimEnd())
		.replace(/@VIEWS@/g, () => readFileSync('views.html', 'utf8').trimEnd())
		.replace(/@SLOW@/g, () => readFileSync('slow_views.html', 'utf8').trimEnd())
		.replace(/@(POLICY|STYLE|LICENCES|SCRIPT)@/g, (mark) => parts[mark])
		// What is left are texts of the page: references stand for the same.
		.replace(/[^\x00-\x7f]/gu, (c) => `&#${c.codePointAt(0)};`);

	return { text, policy, notices };
}

function cut(name, { text }) {
	const [head, tail] = text.split('@DATA@');

	if (tail === undefined)
		throw new Error(`${name} has no place for its data`);
	writeFileSync(`${name}.head`, head);
	writeFileSync(`${name}.tail`, tail);
}

const report = await makePage('page', 'main.js');
const live = await makePage('live', 'live.js', "'self'");

cut('page', report);
cut('slow', await makePage('slow', 'slow_main.js'));
writeFileSync('live.page', live.text);
writeFileSync('live.policy', `${live.policy}; frame-ancestors 'none'`);
writeFileSync('licences.txt', report.notices);
