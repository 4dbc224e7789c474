// SPDX-License-Identifier: BSD-2-Clause
// The live page's own server, which forwards requests to the daemon. The token is in the page's URL.

const TOKEN = new URLSearchParams(location.search).get('token') ?? '';

// An error that was answered, or that there is no answer: what happened, and what to do.
export class ApiError extends Error {
	constructor(status, message, hint) {
		super(message);
		this.status = status; // 0: no answer
		this.hint = hint ?? '';
	}
}

async function send(method, path, body) {
	try {
		return await fetch(path, {
			method,
			headers: {
				'X-Pyprofd-Token': TOKEN,
				...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
			},
			body: body === undefined ? undefined : JSON.stringify(body),
			cache: 'no-store',
		});
	} catch {
		throw new ApiError(0, 'pyprofctl does not answer any more', 'run `pyprofctl ui` again and open the URL that it prints');
	}
}

export async function api(method, path, body) {
	const response = await send(method, path, body);
	const json = await response.json().catch(() => null);

	if (!response.ok)
		throw new ApiError(response.status, json?.message ?? `HTTP status ${response.status}`, json?.hint);
	if (json === null)
		throw new ApiError(response.status, 'the answer was interrupted', 'it is tried again');
	return json;
}
