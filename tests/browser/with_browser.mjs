// SPDX-License-Identifier: BSD-2-Clause
// Runs a command beside one headless Chromium, which its test programs share: each start takes seconds of CPU time.
//
//    node with_browser.mjs COMMAND [ARG]...

import { spawn } from 'node:child_process';
import { existing, launchOptions } from './harness.mjs';
import { chromium } from 'playwright-core';

const [command, ...args] = process.argv.slice(2);
const server = existing() ? await chromium.launchServer(launchOptions(['--disable-gpu'])) : null;
const env = { ...process.env, ...(server && { PYPROF_BROWSER: server.wsEndpoint() }) };
const child = spawn(command, args, { stdio: 'inherit', env });
const [code] = await new Promise((resolve) => child.on('exit', (...how) => resolve(how)));

await server?.close();
process.exit(code ?? 1);
