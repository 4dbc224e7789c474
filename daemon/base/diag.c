// SPDX-License-Identifier: BSD-2-Clause
/* Diagnoses: see diag.h. */
#include "base/diag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/terminal.h"

static void diag_vset(struct diag *diag, int err, enum pyp_exit exit, const char *fmt, va_list ap)
{
	diag->err = err;
	diag->exit = exit;
	vsnprintf(diag->msg, sizeof(diag->msg), fmt, ap);
}

int diag_set(struct diag *diag, int err, enum pyp_exit exit, const char *hint, const char *fmt, ...)
{
	va_list ap;

	if (!diag || diag->err)
		return err;
	va_start(ap, fmt);
	diag_vset(diag, err, exit, fmt, ap);
	va_end(ap);
	snprintf(diag->hint, sizeof(diag->hint), "%s", hint ? hint : "");
	return err;
}

static enum pyp_exit exit_of_errno(int err)
{
	switch (err) {
	case ESRCH:
		return PYP_EXIT_NO_PROCESS;
	case EPERM:
	case EACCES:
		return PYP_EXIT_PERMISSION;
	default:
		return PYP_EXIT_FAILURE;
	}
}

/* "run as root" is no advice if root was refused. */
static const char *hint_of_permission(void)
{
	return geteuid() ? "run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE; for "
			   "other users' processes CAP_DAC_READ_SEARCH, too"
			 : "check for missing capabilities, a user namespace, seccomp or a "
			   "security module";
}

static const char *hint_of_errno(int err)
{
	switch (err) {
	case ESRCH:
		return "check the pid";
	case EPERM:
	case EACCES:
		return hint_of_permission();
	case ENOMEM:
		return "free some memory";
	default:
		return "";
	}
}

int diag_errno(struct diag *diag, int err, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (!diag || diag->err)
		return -err;
	va_start(ap, fmt);
	diag_vset(diag, -err, exit_of_errno(err), fmt, ap);
	va_end(ap);
	n = strlen(diag->msg);
	snprintf(diag->msg + n, sizeof(diag->msg) - n, ": %s", strerror(err));
	snprintf(diag->hint, sizeof(diag->hint), "%s", hint_of_errno(err));
	return -err;
}

void diag_clear(struct diag *diag)
{
	if (diag)
		memset(diag, 0, sizeof(*diag));
}

const char *diag_format(const struct diag *diag, char *out, unsigned long size)
{
	snprintf(out, size, diag->hint[0] ? "%s; %s" : "%s", diag->msg, diag->hint);
	return terminal_clean(out, out, size);
}

const char *diag_exit_name(enum pyp_exit exit)
{
	switch (exit) {
	case PYP_EXIT_OK:
		return "ok";
	case PYP_EXIT_FAILURE:
		return "failure";
	case PYP_EXIT_USAGE:
		return "usage";
	case PYP_EXIT_NO_PROCESS:
		return "no_process";
	case PYP_EXIT_PERMISSION:
		return "permission";
	case PYP_EXIT_UNTRACEABLE:
		return "untraceable";
	case PYP_EXIT_NO_DAEMON:
		return "no_daemon";
	case PYP_EXIT_BUSY:
		return "busy";
	}
	return "failure";
}
