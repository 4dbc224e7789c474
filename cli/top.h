/* SPDX-License-Identifier: BSD-2-Clause */
/* Live views: shared by top and watch */
#ifndef PYPROFCTL_TOP_H
#define PYPROFCTL_TOP_H

#include "client.h"
#include "top_model.h"

/* A model and its data source. All zero: nothing to free. */
struct top {
	struct client *client; /* owned */
	struct top_model *model;
	json_t *status; /* the latest response, or NULL */
	pid_t pid;	/* 0: all */
	uint64_t interval_ns;
};

void top_deinit(struct top *t);

/* Fetch statistics once. */
int top_fetch(struct top *t, struct diag *diag);

/* Clear the daemon's data. */
int top_clear(struct top *t, struct diag *diag);

/* Show the callers of the selected function; return from that view. */
int top_show_callers(struct top *t, struct diag *diag);
void top_leave_callers(struct top *t);

#endif
