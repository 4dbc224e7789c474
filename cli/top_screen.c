// SPDX-License-Identifier: BSD-2-Clause
/*
 * top's screen: drawing and keys, with ncurses. The model provides the text; put_line() is the only
 * function that draws, and cleans it. If the daemon is gone, the screen keeps the latest figures
 * and retries.
 */
#include "top_screen.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "base/clock.h"
#include "base/terminal.h"
#include "format/screen.h"

#define HEAD_LINES 3
#define ESCAPE	   27
#define CTRL_L	   '\f'
#define KEYS                                                                                       \
	"q quit  / filter  <> sort  r reverse  t threads  w clock  p pause  z zero  Enter callers"

#define CALLERS_KEYS "q quit  <> sort  r reverse  w clock  p pause  z zero  Enter back"

struct screen {
	struct top *top;
	bool paused, leaving, ascii;
	char message[512]; /* error message or "" */
	char input[128];   /* the filter being typed */
	bool typing, confirming;
	uint64_t next_ns;
	size_t first; /* index of the topmost row shown */
};

static size_t columns(void)
{
	return COLS > 1 ? (size_t)COLS - 1 : 1;
}

/* ---- drawing ---- */

/* If the terminal's character set is not UTF-8, show only ASCII. */
static void put_line(const struct screen *s, int y, int attributes, char *text)
{
	if (y >= LINES)
		return;
	terminal_clean(text, text, strlen(text) + 1);
	for (char *p = text; s->ascii && *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	attron(attributes);
	mvaddstr(y, 0, text);
	if (attributes & (int)A_REVERSE)
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

static void line_end(struct line *l, const struct screen *s, int y, int attributes)
{
	if (l->out && fclose(l->out) == 0)
		put_line(s, y, attributes, l->text);
	free(l->text);
}

static void fit(const struct screen *s, int y, int attributes, const char *text)
{
	struct line l;

	if (line_begin(&l))
		screen_fit(l.out, text, columns());
	line_end(&l, s, y, attributes);
}

static void draw_head(const struct screen *s)
{
	const struct top_model *m = s->top->model;
	const char *callers = top_model_callers(m), *filter = callers ? "" : top_model_filter(m);
	char text[512];
	struct line l;

	if (line_begin(&l))
		top_print_status(s->top->status, columns(), l.out);
	line_end(&l, s, 0, A_NORMAL);
	snprintf(text, sizeof(text), "%s%.300s%s%s | by %s%s%s%s%s", callers ? "callers of " : "",
		 callers ? callers : "", callers ? " | " : "",
		 top_model_clock(m) == SNAPSHOT_WALL ? "wall clock" : "cpu clock",
		 top_sort_names[top_model_sort(m)], top_model_reversed(m) ? ", reversed" : "",
		 *filter ? " | filter " : "", filter, s->paused ? " | PAUSED" : "");
	fit(s, 1, A_NORMAL, text);
	if (line_begin(&l))
		top_print_heading(m, columns(), l.out);
	line_end(&l, s, 2, A_REVERSE | A_BOLD);
}

static int body_lines(void)
{
	return LINES > HEAD_LINES + 1 ? LINES - HEAD_LINES - 1 : 0;
}

static void draw_rows(struct screen *s)
{
	size_t n, selected = top_model_selected(s->top->model), room = (size_t)body_lines();
	const struct top_row *rows = top_model_rows(s->top->model, &n);

	if (selected < s->first)
		s->first = selected;
	if (room && selected >= s->first + room)
		s->first = selected - room + 1;
	if (s->first >= n)
		s->first = 0;
	for (size_t i = 0; i < room && s->first + i < n; i++) {
		const struct top_row *r = &rows[s->first + i];
		struct line l;

		if (line_begin(&l))
			top_print_row(r, columns(), l.out);
		line_end(&l, s, HEAD_LINES + (int)i,
			 s->first + i == selected ? A_REVERSE
			 : r->rate > 0		  ? A_NORMAL
						  : A_DIM);
	}
}

static void draw_foot(const struct screen *s)
{
	char text[192];

	if (s->typing) {
		snprintf(text, sizeof(text), "filter: %s_", s->input);
		fit(s, LINES - 1, A_BOLD, text);
	} else if (s->confirming) {
		fit(s, LINES - 1, A_BOLD, "reset the daemon's data? y/n");
	} else {
		fit(s, LINES - 1, s->message[0] ? A_BOLD : A_DIM,
		    s->message[0]		       ? s->message
		    : top_model_callers(s->top->model) ? CALLERS_KEYS
						       : KEYS);
	}
}

static void draw(struct screen *s)
{
	erase();
	draw_head(s);
	draw_rows(s);
	draw_foot(s);
	refresh();
}

/* ---- keys ---- */

static void show_error(struct screen *s, const struct diag *diag)
{
	snprintf(s->message, sizeof(s->message), "%s", diag->msg);
}

static void on_typed(struct screen *s, int key)
{
	size_t n = strlen(s->input);
	struct diag diag = {0};

	if (key == ESCAPE) {
		s->typing = false;
	} else if (key == '\n' || key == KEY_ENTER) {
		s->typing = false;
		s->message[0] = '\0';
		if (top_model_set_filter(s->top->model, s->input, &diag) < 0)
			show_error(s, &diag);
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		if (n)
			s->input[n - 1] = '\0';
	} else if (key >= ' ' && key < 256 && n + 1 < sizeof(s->input)) {
		s->input[n] = (char)key;
		s->input[n + 1] = '\0';
	}
}

static void on_confirm(struct screen *s, int key)
{
	struct diag diag = {0};

	s->confirming = false;
	if (key == 'y' && top_clear(s->top, &diag) < 0)
		show_error(s, &diag);
	s->next_ns = 0;
}

static void show_callers(struct screen *s)
{
	struct diag diag = {0};

	int r = top_show_callers(s->top, &diag);

	if (r == 0)
		r = top_fetch(s->top, &diag);
	if (r < 0)
		show_error(s, &diag);
}

static void on_move(struct screen *s, int key)
{
	long page = body_lines() > 1 ? body_lines() - 1 : 1;
	size_t n;

	top_model_rows(s->top->model, &n);
	top_model_move(s->top->model, key == KEY_UP || key == 'k'     ? -1
				      : key == KEY_DOWN || key == 'j' ? 1
				      : key == KEY_PPAGE	      ? -page
				      : key == KEY_NPAGE	      ? page
				      : key == KEY_HOME		      ? -(long)n
								      : (long)n);
}

static void on_sort(struct screen *s, int step)
{
	struct top_model *m = s->top->model;
	int sort = ((int)top_model_sort(m) + step + TOP_SORTS) % TOP_SORTS;

	top_model_set_sort(m, (enum top_sort)sort, top_model_reversed(m));
}

static void on_key(struct screen *s, int key)
{
	struct top_model *m = s->top->model;

	switch (key) {
	case 'q':
		s->leaving = true;
		break;
	case CTRL_L:
		clearok(curscr, true);
		break;
	case '/':
		s->typing = true;
		snprintf(s->input, sizeof(s->input), "%s", top_model_filter(m));
		break;
	case '<':
	case '>':
		on_sort(s, key == '<' ? -1 : 1);
		break;
	case 'r':
		top_model_set_sort(m, top_model_sort(m), !top_model_reversed(m));
		break;
	case 't':
		top_model_set_view(m,
				   top_model_view(m) == TOP_THREADS ? TOP_FUNCTIONS : TOP_THREADS);
		break;
	case 'w':
		top_model_set_clock(m, top_model_clock(m) == SNAPSHOT_CPU ? SNAPSHOT_WALL
									  : SNAPSHOT_CPU);
		break;
	case 'p':
	case ' ':
		s->paused = !s->paused;
		break;
	case 'z':
		s->confirming = true;
		break;
	case '\n':
	case KEY_ENTER:
		show_callers(s);
		break;
	case KEY_UP:
	case KEY_DOWN:
	case KEY_PPAGE:
	case KEY_NPAGE:
	case KEY_HOME:
	case KEY_END:
	case 'j':
	case 'k':
		on_move(s, key);
		break;
	default:
		break;
	}
}

static void handle(struct screen *s, int key)
{
	if (key == ERR || key == KEY_RESIZE)
		return;
	if (s->typing)
		on_typed(s, key);
	else if (s->confirming)
		on_confirm(s, key);
	else if (top_model_callers(s->top->model) &&
		 (key == '\n' || key == KEY_ENTER || key == ESCAPE || key == 't' || key == '/'))
		top_leave_callers(s->top);
	else
		on_key(s, key);
}

/* ---- the loop ---- */

static void fetch_when_due(struct screen *s)
{
	struct diag diag = {0};

	if (s->paused || clock_monotonic_ns() < s->next_ns)
		return;
	s->message[0] = '\0';
	if (top_fetch(s->top, &diag) < 0)
		show_error(s, &diag);
	s->next_ns = clock_monotonic_ns() + s->top->interval_ns;
}

static int wait_ms(const struct screen *s)
{
	uint64_t now = clock_monotonic_ns();

	if (s->paused)
		return 1000;
	return now < s->next_ns ? (int)((s->next_ns - now) / 1000000) + 1 : 0;
}

static bool locale_is_ascii(void)
{
	return !setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1;
}

int top_screen_run(struct top *t, struct diag *diag)
{
	struct screen s = {.top = t, .next_ns = clock_monotonic_ns() + t->interval_ns};
	SCREEN *terminal;

	s.ascii = locale_is_ascii();
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return diag_set(diag, -ENOTTY, PYP_EXIT_FAILURE,
				"set TERM, or use `pyprofctl watch`",
				"this terminal cannot show a full screen");
	cbreak();
	noecho();
	keypad(stdscr, true);
	set_escdelay(50);
	curs_set(0);
	while (!s.leaving) {
		draw(&s);
		timeout(wait_ms(&s));
		handle(&s, getch());
		fetch_when_due(&s);
	}
	endwin();
	delscreen(terminal);
	return 0;
}
