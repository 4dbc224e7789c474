/* SPDX-License-Identifier: BSD-2-Clause */
/* Live views: shared by top and watch */
#ifndef PYPROFCTL_TOP_H
#define PYPROFCTL_TOP_H

#include "client.h"
#include "top_model.h"
#include "top_record.h"

/* A model and its data source. All zero: nothing to free. */
struct top {
	struct client *client; /* owned */
	const char *socket;
	struct top_model *model;
	json_t *status; /* the latest response, or NULL */
	pid_t pid, tid; /* whose functions and threads are shown; 0: all */
	bool selected;	/* by the user, in the live view; then `asked` is the pid before */
	pid_t asked;
	bool choose_view;     /* none was asked for: processes in continuous mode */
	enum top_view home;   /* of all processes */
	uint64_t interval_ns; /* 0: not given */
	const char *output;   /* file for recordings; NULL: a new one for each */
	struct top_recording recording;
	bool waits;  /* reasons for waiting in place of times: top_set_waits() */
	bool colour; /* the terminal has colours, and the user wants them */
};

void top_deinit(struct top *t);

/* Fetch statistics once. */
int top_fetch(struct top *t, struct diag *diag);

/* The time until the next fetch. */
uint64_t top_pause_ns(const struct top *t);

/* The interval that is shown, as "14:00:10-14:00:20"; "": none, rates are of the last moment. */
const char *top_interval_text(const struct top *t, char out[24]);

/* Start a recording of what is shown. */
int top_record(struct top *t, struct diag *diag);

/* Clear the daemon's data. */
int top_clear(struct top *t, struct diag *diag);

/* Show only functions and threads of the selected thread or process; show those of all again. */
int top_select(struct top *t, struct diag *diag);
void top_select_all(struct top *t);

/* Show the callers of the selected function; return from that view. */
int top_show_callers(struct top *t, struct diag *diag);
void top_leave_callers(struct top *t);

/* Show reasons for waiting in place of times, and sort by them unless another order is set. */
void top_set_waits(struct top *t, bool waits);

#endif
