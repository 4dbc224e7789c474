// SPDX-License-Identifier: BSD-2-Clause
// The report of slow calls: one page with its data in it.

import { nextTheme } from './theme.js';
import { SlowCalls, slowParts, summary } from './slow.js';
import { element, shortened, visible } from './text.js';

const data = document.getElementById('data');
const result = JSON.parse(data.textContent);
const title = result.targets?.map((t) => t.cmdline || `process ${t.pid}`).join(', ') ?? '';
const facts = [
	['program', result.program],
	['host', result.host],
	['kernel', result.kernel],
	...(result.targets ?? []).map((t) => [`process ${t.pid}`, `Python ${t.python_version}, ${t.cmdline}`]),
].filter(([, value]) => value);

data.remove();
document.title = `pyprofd: slow calls: ${shortened(title, 80)}`;
document.getElementById('command').textContent = shortened(title, 300);
document.getElementById('slow-summary').textContent = summary(result);
document.getElementById('lines').replaceChildren(
	...facts.map(([label, value]) =>
		element('tr', {}, element('th', { scope: 'row' }, label), element('td', {}, element('bdi', {}, visible(String(value))))),
	),
);
document.getElementById('theme').addEventListener('click', nextTheme);
new SlowCalls(slowParts()).set(result);
document.documentElement.dataset.ready = Math.round(performance.now());
