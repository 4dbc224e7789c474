// SPDX-License-Identifier: BSD-2-Clause
/* Keys of the live view: see top_keys.h. */
#include "top_keys.h"

#include <curses.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "render.h"

#define ESCAPE 27
#define CTRL_L '\f'

const struct top_help top_help[] = {
	{"arrows, j k", "select a row"},
	{"Enter", "callers of a function; functions of a thread"},
	{"Esc", "go back"},
	{"t  P", "threads; processes; again: functions"},
	{"b", "why they wait: bars by reason"},
	{"/", "filter by a regular expression"},
	{"<  >", "previous, next sort key"},
	{"s", "type sort keys: as for snapshot --sort"},
	{"R", "reverse the order"},
	{"w", "CPU time or wall time"},
	{"%", "percent of one CPU or of all"},
	{"f", "full paths and command lines"},
	{"r", "record to a file, until r again"},
	{"p Space", "pause, continue"},
	{"z", "reset the daemon's data"},
	{"Ctrl-L", "redraw"},
	{"q", "quit"},
	{NULL, NULL},
};

static void show_error(struct top_ui *ui, const struct diag *diag)
{
	snprintf(ui->notice, sizeof(ui->notice), "%s", diag->msg);
}

/* ---- prompts ---- */

static void apply(struct top_ui *ui)
{
	struct top_model *m = ui->top->model;
	struct top_order order;
	struct diag diag = {0};
	int err = 0;

	if (ui->prompt == TOP_PROMPT_FILTER) {
		err = top_model_set_filter(m, ui->input, &diag);
	} else if (ui->input[0]) {
		err = top_order_parse(ui->input, &order, &diag);
		if (err == 0)
			top_model_set_order(m, &order, top_model_reversed(m));
	}
	if (err < 0)
		show_error(ui, &diag);
	ui->prompt = TOP_PROMPT_NONE;
}

static void on_typed(struct top_ui *ui, int key)
{
	size_t n = strlen(ui->input);

	if (key == ESCAPE) {
		ui->prompt = TOP_PROMPT_NONE;
	} else if (key == '\n' || key == KEY_ENTER) {
		apply(ui);
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		if (n)
			ui->input[n - 1] = '\0';
	} else if (key >= ' ' && key < 256 && n + 1 < sizeof(ui->input)) {
		ui->input[n] = (char)key;
		ui->input[n + 1] = '\0';
	}
}

static void on_confirm(struct top_ui *ui, int key)
{
	struct diag diag = {0};

	ui->prompt = TOP_PROMPT_NONE;
	if (key == 'y' && top_clear(ui->top, &diag) < 0)
		show_error(ui, &diag);
	ui->next_ns = 0;
}

static void ask(struct top_ui *ui, enum top_prompt prompt, const char *input)
{
	ui->prompt = prompt;
	snprintf(ui->input, sizeof(ui->input), "%s", input);
}

/* ---- what is shown ---- */

/* Enter */
static void open_row(struct top_ui *ui)
{
	struct diag diag = {0};
	int r = top_model_view(ui->top->model) == TOP_FUNCTIONS ? top_show_callers(ui->top, &diag)
								: top_select(ui->top, &diag);

	if (r == 0)
		r = top_fetch(ui->top, &diag);
	ui->next_ns = clock_monotonic_ns() + top_pause_ns(ui->top);
	if (r < 0)
		show_error(ui, &diag);
}

/* Esc */
static void go_back(struct top_ui *ui)
{
	if (top_model_callers(ui->top->model)) {
		top_leave_callers(ui->top);
	} else {
		top_select_all(ui->top);
		ui->next_ns = 0;
	}
}

static void toggle_view(struct top_ui *ui, enum top_view view)
{
	struct top_model *m = ui->top->model;

	if (top_model_callers(m))
		top_leave_callers(ui->top);
	top_model_set_view(m, top_model_view(m) == view ? TOP_FUNCTIONS : view);
}

static void on_sort(struct top_ui *ui, int step)
{
	struct top_model *m = ui->top->model;
	struct top_order order = *top_model_order(m);

	top_order_step(&order, step);
	top_model_set_order(m, &order, top_model_reversed(m));
}

static void toggle_cpus(struct top_model *m)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	top_model_set_cpus(m, top_model_cpus(m) == 1 && cpus > 0 ? (unsigned int)cpus : 1);
}

static bool on_move(struct top_ui *ui, int key)
{
	long page = ui->page > 1 ? (long)ui->page - 1 : 1;
	const struct {
		int key;
		long rows;
	} moves[] = {
		{KEY_UP, -1},	    {'k', -1},	       {KEY_DOWN, 1},	       {'j', 1},
		{KEY_PPAGE, -page}, {KEY_NPAGE, page}, {KEY_HOME, -INT32_MAX}, {KEY_END, INT32_MAX},
	};

	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (moves[i].key == key) {
			top_model_move(ui->top->model, moves[i].rows);
			return true;
		}
	return false;
}

/* ---- recording ---- */

void top_end_recording(struct top_ui *ui)
{
	struct top_recording *r = &ui->top->recording;
	struct diag diag = {0};
	char file[sizeof(r->path)], passed[32];

	if (!r->path[0])
		return;
	memcpy(file, r->path, sizeof(file));
	render_duration(clock_monotonic_ns() - r->start_ns, passed, sizeof(passed));
	if (top_record_stop(r, ui->top->client, &diag) < 0)
		show_error(ui, &diag);
	else
		snprintf(ui->notice, sizeof(ui->notice), "recorded %s to %s", passed, file);
}

static void toggle_recording(struct top_ui *ui)
{
	struct top *t = ui->top;
	struct diag diag = {0};

	if (t->recording.path[0])
		top_end_recording(ui);
	else if (top_record(t, &diag) < 0)
		show_error(ui, &diag);
}

/* ---- keys ---- */

/* Keys that change what is shown */
static bool on_setting(struct top_ui *ui, int key)
{
	struct top_model *m = ui->top->model;

	switch (key) {
	case '<':
	case '>':
		on_sort(ui, key == '<' ? -1 : 1);
		break;
	case 'R':
		top_model_set_order(m, top_model_order(m), !top_model_reversed(m));
		break;
	case 't':
	case 'P':
		toggle_view(ui, key == 't' ? TOP_THREADS : TOP_PROCESSES);
		break;
	case 'b':
		top_set_waits(ui->top, !ui->top->waits);
		break;
	case 'w':
		top_model_set_clock(m, top_model_clock(m) == SNAPSHOT_CPU ? SNAPSHOT_WALL
									  : SNAPSHOT_CPU);
		break;
	case '%':
		toggle_cpus(m);
		break;
	case 'f':
		top_model_set_full_names(m, !top_model_full_names(m));
		break;
	default:
		return false;
	}
	return true;
}

static void on_command(struct top_ui *ui, int key)
{
	struct top_model *m = ui->top->model;

	switch (key) {
	case 'q':
		ui->leaving = true;
		break;
	case CTRL_L:
		ui->redraw = true;
		break;
	case '?':
	case 'h':
		ui->help = true;
		ui->help_first = 0;
		break;
	case '/':
		ask(ui, TOP_PROMPT_FILTER, top_model_filter(m));
		break;
	case 's':
		ask(ui, TOP_PROMPT_SORT, "");
		break;
	case 'z':
		ui->prompt = TOP_PROMPT_CLEAR;
		break;
	case 'p':
	case ' ':
		ui->paused = !ui->paused;
		break;
	case 'r':
		toggle_recording(ui);
		break;
	case '\n':
	case KEY_ENTER:
		if (top_model_callers(m))
			go_back(ui);
		else
			open_row(ui);
		break;
	case ESCAPE:
		go_back(ui);
		break;
	default:
		break;
	}
}

/* The arrows scroll, other keys leave. */
static void on_help(struct top_ui *ui, int key)
{
	if (key == KEY_DOWN || key == KEY_NPAGE || key == 'j')
		ui->help_first++;
	else if (key == KEY_UP || key == KEY_PPAGE || key == 'k')
		ui->help_first -= ui->help_first > 0;
	else
		ui->help = false;
}

void top_key(struct top_ui *ui, int key)
{
	ui->notice[0] = '\0';
	if (ui->prompt == TOP_PROMPT_CLEAR)
		on_confirm(ui, key);
	else if (ui->prompt != TOP_PROMPT_NONE)
		on_typed(ui, key);
	else if (ui->help)
		on_help(ui, key);
	else if (!on_setting(ui, key) && !on_move(ui, key))
		on_command(ui, key);
}
