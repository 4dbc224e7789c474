/* SPDX-License-Identifier: BSD-2-Clause */
/* What the keys of the live view do, apart from drawing. */
#ifndef PYPROFCTL_TOP_KEYS_H
#define PYPROFCTL_TOP_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "top.h"

struct top_ui {
	struct top *top;
	bool paused, leaving, redraw, help;
	enum top_prompt {
		TOP_PROMPT_NONE,
		TOP_PROMPT_FILTER,
		TOP_PROMPT_SORT,
		TOP_PROMPT_CLEAR,
	} prompt;
	char input[128];   /* being typed */
	char error[512];   /* of the latest request; "": none */
	char notice[4352]; /* shown until the next key; "": none */
	uint64_t next_ns;  /* time of the next request */
	size_t page;	   /* rows that fit on the screen */
	size_t help_first; /* the topmost line of the help shown */
};

/* Lines of the help: keys, and what they do. Ends with NULL. */
struct top_help {
	const char *keys, *text;
};
extern const struct top_help top_help[];

/* Handle a key of ncurses. */
void top_key(struct top_ui *ui, int key);

/* End a recording, if there is one, and say where it is. */
void top_end_recording(struct top_ui *ui);

#endif
