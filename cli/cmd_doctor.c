// SPDX-License-Identifier: BSD-2-Clause
/* doctor: check whether and how a Python can be traced. Runs without a daemon. */
#include "cmd.h"

#include "doctor/doctor.h"

static int run(const struct cmd_call *call, struct diag *diag)
{
	return doctor_run(call->operands[0], call->out, diag);
}

const struct cmd cmd_doctor = {
	.name = "doctor",
	.operands = "PID|PYTHON-BINARY",
	.summary = "Check whether a Python can be traced (no daemon)",
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
