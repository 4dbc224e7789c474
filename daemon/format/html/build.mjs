// SPDX-License-Identifier: BSD-2-Clause
// Bundles the page into one file and cuts it where the data goes: page.head, page.tail. Run beside
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

// d3-flame-graph imports its own style, which page.css has already.
const script = await bundle('main.js', '.js', {
	format: 'esm',
	target: 'es2022',
	loader: { '.css': 'empty' },
});
const style = await bundle('page.css', '.css', {});
// Only this very script and style may run, and nothing may be fetched from anywhere.
const notices = licences([...script.inputs, ...style.inputs]);
const policy = [
	"default-src 'none'",
	`script-src ${hash(script.text)}`,
	`style-src ${hash(style.text)}`,
	'img-src data:',
	"base-uri 'none'",
	"form-action 'none'",
].join('; ');
const parts = {
	'@POLICY@': policy,
	'@STYLE@': style.text,
	'@LICENCES@': escapeHtml(notices),
	'@SCRIPT@': script.text,
};
const page = readFileSync('page.html', 'utf8')
	.replace(/@[A-Z]+@/g, (mark) => parts[mark] ?? mark)
	// What is left are texts of the page: references stand for the same.
	.replace(/[^\x00-\x7f]/gu, (c) => `&#${c.codePointAt(0)};`);
const [head, tail] = page.split('@DATA@');

// A reference means nothing in a script or style, and both are hashed: they are ASCII as it is.
if (tail === undefined || /[^\x00-\x7f]/.test(script.text + style.text) || /<\/(script|style)/i.test(script.text + style.text))
	throw new Error('the page cannot be put together');
writeFileSync('page.head', head);
writeFileSync('page.tail', tail);
writeFileSync('licences.txt', notices);
