// SPDX-License-Identifier: BSD-2-Clause
/* cli/top_lines: figures and names at each width, bars, the status line. */
#include "top_lines.h"

#include "harness/test.h"

/* Print with one of the functions of top_lines.h to a string, to be freed. */
#define PRINTED(call)                                                                              \
	__extension__({                                                                            \
		char *text_;                                                                       \
		size_t size_;                                                                      \
		FILE *out = open_memstream(&text_, &size_);                                        \
		call;                                                                              \
		fclose(out);                                                                       \
		text_;                                                                             \
	})

static const struct top_row example = {.name = "a.py:1(\033[2J\n)",
				       .calls = 1234567890,
				       .tottime = 1500000000,
				       .cumtime = 99999000000000,
				       .rate = 25.4,
				       .self = 12.34,
				       .cum = 100,
				       .wait = {30, 0, 0, 12.5},
				       .waiting = 42.5};

static void check_row(size_t columns, const char *want)
{
	_cleanup_free_ char *line = PRINTED(top_print_row(&example, columns, out));

	cr_assert_str_eq(line, want, "%zu columns: '%s'", columns, line);
}

Test(top_lines, rows)
{
	check_row(79, "     25  12.3 100.0    1.2G     1.50 99999.00 a.py:1(\\x1b[2J\\x0a)");
	/* what matters least is left out first */
	check_row(69, "     25  12.3 100.0    1.2G     1.50 a.py:1(\\x1b[2J\\x0a)");
	check_row(59, "     25  12.3 100.0    1.2G a.py:1(\\x1b[2J\\x0a)");
	check_row(50, "     25  12.3 100.0 a.py:1(\\x1b[2J\\x0a)");
	check_row(30, " 12.3 a.py:1(\\x1b[2J\\x0a)");
	check_row(24, "a.py:1(\\x1b[2J\\x0a)");
}

/* Of an interval: a process with its service, functions without numbers of calls. */
Test(top_lines, intervals)
{
	char service[] = "web.service";
	const struct top_entry process = {.pid = 4242, .service = service, .samples = 19};
	const struct top_row p = {.entry = &process, .name = "app.py:7(handle)", .self = 12.34};
	struct top_row f = example;
	char *line;

	line = PRINTED(top_print_row(&p, 79, out));
	cr_assert_str_eq(line, " 12.3      19    4242 web.service            app.py:7(handle)");
	free(line);
	line = PRINTED(top_print_row(&p, 40, out));
	cr_assert_str_eq(line, " 12.3    4242 web...vice app.py...andle)");
	free(line);
	f.uncounted = true;
	line = PRINTED(top_print_row(&f, 79, out));
	cr_assert_str_eq(line, " 12.3 100.0     1.50 99999.00 a.py:1(\\x1b[2J\\x0a)");
	free(line);
	for (size_t columns = 0; columns < 220; columns++) {
		line = PRINTED(top_print_row(&p, columns, out));
		cr_assert(strlen(line) <= columns + 2, "%zu: %s", columns, line);
		free(line);
	}
}

Test(top_lines, no_line_is_too_long)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();

	for (size_t columns = 0; columns < 220; columns++) {
		char *lines[] = {
			PRINTED(top_print_row(&example, columns, out)),
			PRINTED(top_print_heading(m, columns, out)),
			PRINTED(top_print_waits_row(&example, 100, columns, out)),
			PRINTED(top_print_waits_heading(m, columns, out)),
			PRINTED(top_print_legend(columns, out)),
			PRINTED(top_print_status(NULL, columns, out)),
		};
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
			cr_assert(strlen(lines[i]) <= columns, "%zu: %s", columns, lines[i]);
			free(lines[i]);
		}
	}
}

Test(top_lines, headings_are_above_figures)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();
	_cleanup_free_ char *functions = PRINTED(top_print_heading(m, 79, out)), *usage = NULL;

	cr_assert_str_eq(functions, "CALLS/S SELF%  CUM%   CALLS  TOTTIME  CUMTIME FUNCTION");
	top_model_set_view(m, TOP_PROCESSES);
	usage = PRINTED(top_print_heading(m, 79, out));
	cr_assert_str_eq(usage, "CALLS/S  CPU% WALL%   CALLS      CPU     WALL PID COMMAND");
}

static void check_bar(double full, size_t width, const char *want)
{
	char bar[TOP_BAR_MAX + 1];

	cr_assert_eq(top_bar(&example, full, width, bar), strlen(want));
	cr_assert_str_eq(bar, want, "%s", bar);
}

Test(top_lines, bars)
{
	check_bar(100, 20, "GGGGGGIII"); /* 30 % and 12.5 % of 20: 6 and 2.5 */
	check_bar(42.5, 20, "GGGGGGGGGGGGGGIIIIII");
	check_bar(100, 0, "");
	check_bar(1e9, 20, "");
	check_bar(1, 1000, "GGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGG"); /* at most TOP_BAR_MAX */
	for (int i = 0; i < TOP_WAITS; i++)
		cr_assert_eq(strchr(top_wait_letters, top_wait_letters[i]) - top_wait_letters, i,
			     "no letter has two meanings");
}

Test(top_lines, waits)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();
	_cleanup_free_ char *row = PRINTED(top_print_waits_row(&example, 100, 79, out));
	_cleanup_free_ char *heading = PRINTED(top_print_waits_heading(m, 79, out));
	_cleanup_free_ char *legend = PRINTED(top_print_legend(79, out));
	struct top_bar_place place = top_bar_place(79);

	cr_assert(strncmp(row + place.column, "GGGG", 4) == 0 && place.width == 27, "%s", row);
	cr_assert_str_eq(row, "  42.5 GGGGGGGGIII                 gil      a.py:1(\\x1b[2J\\x0a)");
	cr_assert_str_eq(heading, " WAIT% REASONS                     MAINLY   FUNCTION");
	cr_assert_str_eq(legend, "G gil  L lock  R runnable  I io  S sleep  F fault  P process  "
				 "O other");
	cr_assert_eq(top_bar_place(40).width, 0);
}

Test(top_lines, parts)
{
	const char *const parts[] = {"first", "", "second", "third", NULL};
	_cleanup_free_ char *all = PRINTED(top_print_parts(parts, " | ", 30, out));
	_cleanup_free_ char *two = PRINTED(top_print_parts(parts, " | ", 21, out));
	_cleanup_free_ char *part = PRINTED(top_print_parts(parts, " | ", 4, out));

	cr_assert_str_eq(all, "first | second | third");
	cr_assert_str_eq(two, "first | second");
	cr_assert(strlen(part) <= 4, "%s", part);
}

Test(top_lines, status)
{
	json_t *status = json_loads("{\"targets\": [{\"state\": \"tracing\", \"events\": 1000,"
				    " \"events_per_s\": 100000, \"overhead\": 0.09, \"lost\": 3,"
				    " \"overhead_ns\": 5, \"own_cpu_ns\": 100},"
				    " {\"state\": \"tracing\", \"overhead\": 0.05,"
				    " \"own_cpu_ns\": 300},"
				    " {\"state\": \"ended\", \"events\": 1, \"overhead_ns\": 95,"
				    " \"own_cpu_ns\": 100}]}",
				    0, NULL);
	char *text = PRINTED(top_print_status(status, 100, out));
	char *narrow = PRINTED(top_print_status(status, 59, out));

	cr_assert_str_eq(text, "2 traced, 1 ended | 1001 events, 100000/s, 3 lost | "
			       "overhead 6.0%, 20.0% in all");
	cr_assert_str_eq(narrow, "2 traced | 100000/s, 3 lost | overhead 6.0%");
	free(text);
	free(narrow);
	json_decref(status);
	check_no_leaks();
}
