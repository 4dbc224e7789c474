/* SPDX-License-Identifier: BSD-2-Clause */
/* Live views: what top and watch have in common, and the screen. */
#ifndef PYPROFCTL_TOP_H
#define PYPROFCTL_TOP_H

#include "client.h"
#include "top_model.h"

/* A model and where its figures come from. */
struct top {
	struct client *client; /* borrowed */
	struct top_model *model;
	json_t *status; /* the last answer, or NULL */
	pid_t pid;	/* 0: all */
	uint64_t interval_ns;
};

/* Ask the daemon once. */
int top_fetch(struct top *t, struct diag *diag);

/* Zero the daemon's data. */
int top_clear(struct top *t, struct diag *diag);

/* Show who calls the selected function; back. */
int top_show_callers(struct top *t, struct diag *diag);
void top_leave_callers(struct top *t);

/* The full-screen view, until its user leaves it. */
int top_screen_run(struct top *t, struct diag *diag);

#endif
