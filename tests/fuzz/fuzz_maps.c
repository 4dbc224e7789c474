// SPDX-License-Identifier: BSD-2-Clause
/* Arbitrary bytes as /proc/PID/maps and as a stat file */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/proc.h"
#include "target/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = calloc(size + 1, 1);
	struct target_maps maps;
	struct proc_stat st;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	if (!target_maps_parse(text, size, &maps, NULL))
		target_maps_deinit(&maps);
	proc_stat_parse(text, &st);
	proc_field(text, "Tgid");
	proc_last_pid(text, "NSpid");
	return 0;
}
