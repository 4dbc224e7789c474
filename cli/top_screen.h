/* SPDX-License-Identifier: BSD-2-Clause */
/* The live view on the full screen */
#ifndef PYPROFCTL_TOP_SCREEN_H
#define PYPROFCTL_TOP_SCREEN_H

#include "base/diag.h"
#include "top.h"

/* Run the full-screen view until the user quits. */
int top_screen_run(struct top *t, struct diag *diag);

#endif
