// SPDX-License-Identifier: BSD-2-Clause
// A daemon, a Python program that does as it is told, and the live page's server, as processes.

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { left, over, step } from './patience.mjs';

const BUILD = process.env.PYPROF_BUILD ?? '..';
const DAWDLE = 0.25; // seconds
const PYTHON = process.env.PYTHON ?? '/usr/bin/python3';

// Each line of its input is a number of calls of `told`, each with one of `inner`, or "slow" for one call
// that sleeps in `dawdle`.
const PROGRAM = `
import sys, time
def inner(): pass
def told(): inner()
def dawdle(): time.sleep(${DAWDLE})
def request():
    inner(); dawdle(); inner()
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "slow": request()
    else:
        for i in range(int(line)): told()
    print("done", flush=True)
`;

// A process whose lines of output can be waited for.
class Lines {
	constructor(program, args, options = {}) {
		this.process = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'], ...options });
		this.waiting = [];
		this.lines = [];
		createInterface({ input: this.process.stdout }).on('line', (line) =>
			this.waiting.length ? this.waiting.shift()(line) : this.lines.push(line),
		);
		this.ended = new Promise((resolve) => this.process.on('exit', (code, signal) => resolve(code ?? signal)));
	}

	line() {
		if (this.lines.length)
			return Promise.resolve(this.lines.shift());
		return new Promise((resolve, reject) => {
			const timer = setTimeout(() => reject(new Error('no line of output')), left());

			this.waiting.push((line) => {
				clearTimeout(timer);
				resolve(line);
			});
		});
	}

	async stop(signal = 'SIGTERM') {
		this.process.kill(signal);
		return this.ended;
	}
}

export class Rig {
	constructor() {
		this.told = 0; // traced calls of `told`
		this.dir = mkdtempSync(join(tmpdir(), 'pyprof-live.'));
		this.socket = join(this.dir, 's');
	}

	async start() {
		this.program = new Lines(PYTHON, ['-c', PROGRAM]);
		await this.program.line();
		this.pid = this.program.process.pid;
		await this.startDaemon();
		this.ui = new Lines(join(BUILD, 'pyprofctl'), ['--socket', this.socket, 'ui', '--no-open']);
		this.url = await this.ui.line();
		return this;
	}

	async startDaemon() {
		this.daemon = new Lines(join(BUILD, 'pyprofd'), ['--socket', this.socket, '--exact', '--yes']);
		for (; !this.answers(); await step())
			if (over())
				throw new Error('the daemon does not answer');
	}

	answers() {
		try {
			return existsSync(this.socket) && Boolean(this.ctl('ping') || true);
		} catch {
			return false;
		}
	}

	ctl(...args) {
		return execFileSync(join(BUILD, 'pyprofctl'), ['--socket', this.socket, ...args], {
			encoding: 'utf8',
			stdio: ['ignore', 'pipe', 'ignore'],
			maxBuffer: 1 << 28,
		});
	}

	// The calls of a function, as the command line has them.
	calls(name) {
		const { functions } = JSON.parse(this.ctl('snapshot', '-f', 'json'));

		return functions.filter((f) => f.name === name).reduce((n, f) => n + f.ncalls, 0);
	}

	// traced: the calls are counted.
	async tell(what, traced = true) {
		if (traced && what !== 'slow')
			this.told += what;
		this.program.process.stdin.write(`${what}\n`);
		await this.program.line();
	}

	async end() {
		await this.ui?.stop('SIGINT');
		await this.daemon?.stop();
		this.program?.process.kill('SIGKILL');
		rmSync(this.dir, { recursive: true, force: true });
	}
}
