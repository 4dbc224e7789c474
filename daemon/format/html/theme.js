// SPDX-License-Identifier: BSD-2-Clause
// Light or dark: as the system says, until the reader chooses.

export function nextTheme() {
	const root = document.documentElement;
	const dark = root.dataset.theme
		? root.dataset.theme === 'dark'
		: matchMedia('(prefers-color-scheme: dark)').matches;

	root.dataset.theme = dark ? 'light' : 'dark';
}
