/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines on stderr: "pyprofd: message", one write(2) each, so that lines of several processes do
 * not mix. If stderr is the journal's (JOURNAL_STREAM), the line starts with the priority ("<6>")
 * instead. Characters that can harm a terminal are always replaced (terminal.h). The level is the
 * program's only mutable global.
 */
#ifndef PYPROF_BASE_LOG_H
#define PYPROF_BASE_LOG_H

struct diag;

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* prog: borrowed, a literal. The default level is WARNING. */
void log_init(const char *prog);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Log a diagnosis as one line at level ERROR; without one, the text of err. Returns the exit
 * status, never 0. */
int log_diag(const struct diag *diag, int err);

#define log_error(...)	 log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)	 log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)	 log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
