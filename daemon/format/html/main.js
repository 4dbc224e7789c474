// SPDX-License-Identifier: BSD-2-Clause
// The report: one page with its data in it.

import { load } from './data.js';
import { Page } from './page.js';

const data = document.getElementById('data');
const page = new Page(load(JSON.parse(data.textContent)));

data.remove();
await page.show();
document.documentElement.dataset.ready = Math.round(performance.now());
