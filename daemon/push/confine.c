// SPDX-License-Identifier: BSD-2-Clause
/* Dropping the privileges of a sender: see confine.h. */
#include "push/confine.h"

#include "base/confine.h"

#define MEMORY_MORE (UINT64_C(512) << 20) /* bytes */
#define FILES_MAX   64u

int confine_sender(pid_t parent, size_t memory)
{
	return confine(&(struct confine){.calls = CALL_FILTER_SENDER,
					 .own_user = true,
					 .limits = true,
					 .files = FILES_MAX,
					 .memory = MEMORY_MORE + memory},
		       parent);
}
