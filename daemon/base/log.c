// SPDX-License-Identifier: BSD-2-Clause
/* Log lines on stderr: see log.h. */
#include "base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/terminal.h"

static struct {
	const char *prog;
	enum log_level level;
	bool journal;
} log_state = {.prog = "pyprofd", .level = LOG_LEVEL_WARNING};

/* systemd sets JOURNAL_STREAM=DEVICE:INODE. Compare, as a child with another stderr inherits it,
 * too. */
static bool stderr_is_journal(void)
{
	const char *env = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (!env || fstat(STDERR_FILENO, &st) < 0)
		return false;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(own, env) == 0;
}

void log_init(const char *prog)
{
	log_state.prog = prog;
	log_state.journal = stderr_is_journal();
}

void log_set_level(enum log_level level)
{
	log_state.level = level;
}

enum log_level log_get_level(void)
{
	return log_state.level;
}

static size_t line_head(char *out, size_t size, enum log_level level)
{
	static const int priority[] = {3, 4, 6, 7}; /* as in <syslog.h> */
	int n;

	if (log_state.journal)
		n = snprintf(out, size, "<%d>", priority[level]);
	else
		n = snprintf(out, size, "%s: %s", log_state.prog,
			     level == LOG_LEVEL_WARNING ? "warning: " : "");
	return n < 0 ? 0 : (size_t)n;
}

void log_write(enum log_level level, const char *fmt, ...)
{
	char line[1024];
	size_t n, head;
	va_list ap;

	if (level > log_state.level)
		return;
	head = line_head(line, sizeof(line) - 1, level);
	va_start(ap, fmt);
	vsnprintf(line + head, sizeof(line) - 1 - head, fmt, ap);
	va_end(ap);
	terminal_clean(line + head, line + head, sizeof(line) - 1 - head);
	n = strlen(line);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* the error cannot be reported either */
}

int log_diag(const struct diag *diag, int err)
{
	char line[800];

	if (diag->err)
		log_error("%s", diag_format(diag, line, sizeof(line)));
	else
		log_error("%s", strerror(err < 0 ? -err : err));
	return diag->err && diag->exit ? (int)diag->exit : PYP_EXIT_FAILURE;
}
