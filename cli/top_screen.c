// SPDX-License-Identifier: BSD-2-Clause
/*
 * top's screen, with ncurses: the model and its lines provide the text, and put_line() is the only
 * function that writes it, and cleans it. If the daemon is gone, the screen keeps the latest
 * figures and retries.
 *
 * Colours only mark what letters say, too. Text is in the terminal's own colours, so that it suits
 * dark and light ones.
 */
#include "top_screen.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "base/clock.h"
#include "base/terminal.h"
#include "format/screen.h"
#include "render.h"
#include "top_keys.h"
#include "top_lines.h"

#define HEAD_LINES 3
#define PAIR_ALARM (TOP_WAITS + 1)

struct screen {
	struct top_ui ui;
	bool ascii, colour;
	size_t first; /* index of the topmost row shown */
	int y;	      /* the line to write next */
};

static size_t columns(void)
{
	return COLS > 1 ? (size_t)COLS - 1 : 1;
}

/* ---- colours ---- */

/*
 * Text and background of reason i, pair 1 + i; -1: no colour. Both are given, as a letter in the
 * terminal's own colour is illegible on some of these in dark or in light terminals.
 */
static const short wait_colours[TOP_WAITS][2] = {
	{COLOR_WHITE, COLOR_RED},
	{COLOR_WHITE, COLOR_MAGENTA},
	{COLOR_BLACK, COLOR_YELLOW},
	{COLOR_BLACK, COLOR_CYAN},
	{-1, -1},
	{COLOR_WHITE, COLOR_BLUE},
	{COLOR_BLACK, COLOR_GREEN},
	{-1, -1},
};

static bool start_colours(const struct top *t)
{
	if (!t->colour || !has_colors() || start_color() == ERR || use_default_colors() == ERR)
		return false;
	for (int i = 0; i < TOP_WAITS; i++)
		init_pair((short)(i + 1), wait_colours[i][0], wait_colours[i][1]);
	init_pair(PAIR_ALARM, COLOR_RED, -1);
	return true;
}

/* Letters for reasons are blocks of their colour, or bold. */
static void colour_letter(const struct screen *s, int y, size_t x, char letter)
{
	const char *at = strchr(top_wait_letters, letter);
	size_t reason = at ? (size_t)(at - top_wait_letters) : TOP_WAITS;

	if (reason >= TOP_WAITS || y >= LINES || x + 1 >= (size_t)COLS)
		return;
	if (s->colour && wait_colours[reason][0] >= 0)
		mvchgat(y, (int)x, 1, A_NORMAL, (short)(reason + 1), NULL);
	else
		mvchgat(y, (int)x, 1, A_BOLD, 0, NULL);
}

/* ---- lines ---- */

/* If the terminal's character set is not UTF-8, show only ASCII. */
static void put_line(const struct screen *s, int y, attr_t attributes, char *text)
{
	if (y >= LINES)
		return;
	terminal_clean(text, text, strlen(text) + 1);
	for (char *p = text; s->ascii && *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	attron(attributes);
	mvaddstr(y, 0, text);
	if (attributes & (A_REVERSE | A_UNDERLINE))
		for (int x = getcurx(stdscr); x < COLS - 1; x++)
			addch(' ');
	attroff(attributes);
}

/* A line printed to a stream in memory */
struct line {
	char *text;
	size_t size;
	FILE *out;
};

static FILE *line_begin(struct line *l)
{
	*l = (struct line){0};
	l->out = open_memstream(&l->text, &l->size);
	return l->out;
}

static void line_end(struct line *l, const struct screen *s, int y, attr_t attributes)
{
	if (l->out && fclose(l->out) == 0)
		put_line(s, y, attributes, l->text);
	free(l->text);
}

static void fit(const struct screen *s, int y, attr_t attributes, const char *text)
{
	struct line l;

	if (line_begin(&l))
		screen_fit(l.out, text, columns());
	line_end(&l, s, y, attributes);
}

static void parts(const struct screen *s, int y, attr_t attributes, const char *const *parts,
		  const char *separator)
{
	struct line l;

	if (line_begin(&l))
		top_print_parts(parts, separator, columns(), l.out);
	line_end(&l, s, y, attributes);
}

/* ---- the first lines ---- */

/* Of whom: "callers of FUNCTION", "thread 42/43", "process 42" or "" */
static void subject(const struct top *t, char *out, size_t size)
{
	const char *callers = top_model_callers(t->model);

	out[0] = '\0';
	if (callers)
		snprintf(out, size, "callers of %.300s", callers);
	else if (t->selected && t->tid)
		snprintf(out, size, "thread %d/%d", t->pid, t->tid);
	else if (t->selected)
		snprintf(out, size, "process %d", t->pid);
}

/* "% of one CPU"; percentages of wall time are of elapsed time. */
static void unit(const struct top_model *m, char *out, size_t size)
{
	if (top_model_cpus(m) > 1)
		snprintf(out, size, "%% of %u CPUs", top_model_cpus(m));
	else
		snprintf(out, size, "%% of one CPU");
}

static void draw_settings(const struct screen *s)
{
	const struct top *t = s->ui.top;
	const struct top_model *m = t->model;
	char whom[400], percent[32] = "", order[96], filter[160] = "";
	bool wall = top_model_clock(m) == SNAPSHOT_WALL;
	const char *text = top_model_callers(m) ? "" : top_model_filter(m);
	char interval[24];

	subject(t, whom, sizeof(whom));
	if (!t->waits && (!wall || top_model_view(m) != TOP_FUNCTIONS))
		unit(m, percent, sizeof(percent));
	snprintf(order, sizeof(order), "by %s%s", top_order_text(top_model_order(m)),
		 top_model_reversed(m) ? ", reversed" : "");
	if (*text)
		snprintf(filter, sizeof(filter), "filter %.128s", text);
	parts(s, 1, A_NORMAL,
	      (const char *const[]){s->ui.paused ? "PAUSED" : "", whom,
				    top_interval_text(t, interval),
				    t->waits ? "waiting, % of time"
				    : wall   ? "wall clock"
					     : "cpu clock",
				    order, filter, percent, NULL},
	      " | ");
}

static void draw_heading(const struct screen *s, int y)
{
	const struct top *t = s->ui.top;
	struct line l;

	if (line_begin(&l)) {
		if (t->waits)
			top_print_waits_heading(t->model, columns(), l.out);
		else
			top_print_heading(t->model, columns(), l.out);
	}
	line_end(&l, s, y, A_UNDERLINE | A_BOLD);
}

/* The letters are the only capitals. */
static void draw_legend(const struct screen *s, int y)
{
	struct line l;

	if (line_begin(&l))
		top_print_legend(columns(), l.out);
	if (l.out && fclose(l.out) == 0) {
		put_line(s, y, A_NORMAL, l.text);
		for (size_t x = 0; l.text[x]; x++)
			colour_letter(s, y, x, l.text[x]);
	}
	free(l.text);
}

static void draw_head(struct screen *s)
{
	struct line l;

	if (line_begin(&l))
		top_print_status(s->ui.top->status, columns(), l.out);
	line_end(&l, s, 0, A_NORMAL);
	draw_settings(s);
	s->y = 2;
	if (s->ui.top->waits)
		draw_legend(s, s->y++);
	draw_heading(s, s->y++);
}

/* ---- rows ---- */

static void draw_bar(const struct screen *s, const struct top_row *r, double full)
{
	struct top_bar_place place = top_bar_place(columns());
	char bar[TOP_BAR_MAX + 1];
	size_t n = top_bar(r, full, place.width, bar);

	for (size_t i = 0; i < n; i++)
		colour_letter(s, s->y, place.column + i, bar[i]);
}

static void draw_row(const struct screen *s, const struct top_row *r, double full,
		     attr_t attributes)
{
	struct line l;

	if (line_begin(&l)) {
		if (s->ui.top->waits)
			top_print_waits_row(r, full, columns(), l.out);
		else
			top_print_row(r, columns(), l.out);
	}
	line_end(&l, s, s->y, attributes);
	if (s->ui.top->waits)
		draw_bar(s, r, full);
}

/* In the last interval, as far as figures show it */
static bool is_active(const struct top *t, const struct top_row *r)
{
	return t->waits ? r->waiting >= .05 : r->rate > 0 || r->self >= .05 || r->cum >= .05;
}

static void draw_rows(struct screen *s)
{
	size_t n, selected = top_model_selected(s->ui.top->model), room = s->ui.page;
	const struct top_row *rows = top_model_rows(s->ui.top->model, &n);
	double full = top_bar_full(s->ui.top->model);

	if (selected < s->first)
		s->first = selected;
	if (room && selected >= s->first + room)
		s->first = selected - room + 1;
	if (s->first >= n)
		s->first = 0;
	for (size_t i = s->first; i < n && i < s->first + room; i++, s->y++)
		draw_row(s, &rows[i], full,
			 i == selected			  ? A_REVERSE
			 : is_active(s->ui.top, &rows[i]) ? A_NORMAL
							  : A_DIM);
}

static void draw_help(struct screen *s)
{
	size_t n = 0, room = LINES > 2 ? (size_t)LINES - 2 : 0;

	while (top_help[n].keys)
		n++;
	if (s->ui.help_first + room > n)
		s->ui.help_first = n > room ? n - room : 0;
	fit(s, 0, A_UNDERLINE | A_BOLD, "Keys of pyprofctl top");
	for (size_t i = 0; i < room && s->ui.help_first + i < n; i++) {
		const struct top_help *h = &top_help[s->ui.help_first + i];
		char text[128];

		snprintf(text, sizeof(text), " %-12s %s", h->keys, h->text);
		fit(s, (int)i + 1, A_NORMAL, text);
		mvchgat((int)i + 1, 1, (int)strlen(h->keys), A_BOLD, 0, NULL);
	}
	fit(s, LINES - 1, A_DIM, "arrows scroll, any other key returns");
}

/* ---- the last line ---- */

static void draw_keys(const struct screen *s)
{
	const struct top *t = s->ui.top;
	bool inside = top_model_callers(t->model) || t->selected;
	const char *const keys[] = {"q quit",	 "? help",   inside ? "Esc back" : "",
				    "< > sort",	 "/ filter", "t threads",
				    "b waits",	 "r record", "P processes",
				    "w clock",	 "f paths",  "% CPUs",
				    "R reverse", "p pause",  "z reset",
				    NULL};

	parts(s, LINES - 1, A_DIM, keys, "  ");
}

/* The file is shown all the time: a recording costs memory, and is of use only if it is found. */
static void draw_recording(const struct screen *s)
{
	const struct top_recording *r = &s->ui.top->recording;
	char passed[32], text[sizeof(r->path) + 64];

	render_duration(clock_monotonic_ns() - r->start_ns, passed, sizeof(passed));
	snprintf(text, sizeof(text), "REC %s to %s | r stop", passed, r->path);
	fit(s, LINES - 1, A_BOLD | (s->colour ? (attr_t)COLOR_PAIR(PAIR_ALARM) : 0), text);
}

static void draw_foot(const struct screen *s)
{
	const struct top_ui *ui = &s->ui;
	char text[192];

	if (ui->prompt == TOP_PROMPT_CLEAR) {
		fit(s, LINES - 1, A_BOLD, "reset the daemon's data? y/n");
	} else if (ui->prompt != TOP_PROMPT_NONE) {
		snprintf(text, sizeof(text), "%s: %s_",
			 ui->prompt == TOP_PROMPT_FILTER ? "filter" : "sort keys", ui->input);
		fit(s, LINES - 1, A_BOLD, text);
	} else if (ui->notice[0] || ui->error[0]) {
		fit(s, LINES - 1, A_BOLD, ui->notice[0] ? ui->notice : ui->error);
	} else if (ui->top->recording.path[0]) {
		draw_recording(s);
	} else {
		draw_keys(s);
	}
}

static void draw(struct screen *s)
{
	int head = HEAD_LINES + s->ui.top->waits;

	s->ui.page = LINES > head + 1 ? (size_t)(LINES - head - 1) : 0;
	erase();
	if (s->ui.help) {
		draw_help(s);
	} else {
		draw_head(s);
		draw_rows(s);
		draw_foot(s);
	}
	refresh();
}

/* ---- the loop ---- */

static void fetch_when_due(struct top_ui *ui)
{
	struct diag diag = {0};

	if (ui->paused || clock_monotonic_ns() < ui->next_ns)
		return;
	ui->error[0] = '\0';
	if (top_fetch(ui->top, &diag) < 0)
		snprintf(ui->error, sizeof(ui->error), "%s", diag.msg);
	ui->next_ns = clock_monotonic_ns() + top_pause_ns(ui->top);
}

static int wait_ms(const struct top_ui *ui)
{
	uint64_t now = clock_monotonic_ns();

	if (ui->paused)
		return 1000;
	return now < ui->next_ns ? (int)((ui->next_ns - now) / 1000000) + 1 : 0;
}

static bool locale_is_ascii(void)
{
	return !setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1;
}

static void loop(struct screen *s)
{
	while (!s->ui.leaving) {
		int key;

		if (s->ui.redraw)
			clearok(curscr, true);
		s->ui.redraw = false;
		draw(s);
		timeout(wait_ms(&s->ui));
		key = getch();
		if (key != ERR && key != KEY_RESIZE)
			top_key(&s->ui, key);
		fetch_when_due(&s->ui);
	}
	s->ui.notice[0] = '\0';
	top_end_recording(&s->ui);
}

int top_screen_run(struct top *t, struct diag *diag)
{
	struct screen s = {.ui = {.top = t, .next_ns = clock_monotonic_ns() + top_pause_ns(t)}};
	SCREEN *terminal;

	s.ascii = locale_is_ascii();
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return diag_set(diag, -ENOTTY, PYP_EXIT_FAILURE,
				"set TERM, or use `pyprofctl watch`",
				"this terminal cannot show a full screen");
	s.colour = start_colours(t);
	cbreak();
	noecho();
	keypad(stdscr, true);
	set_escdelay(50);
	curs_set(0);
	loop(&s);
	endwin();
	delscreen(terminal);
	if (s.ui.notice[0])
		fprintf(stderr, "pyprofctl: %s\n", s.ui.notice);
	return 0;
}
