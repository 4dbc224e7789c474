// SPDX-License-Identifier: BSD-2-Clause
/* Pieces of JSON: see jsonout.h. */
#include "format/jsonout.h"

#include <errno.h>

#include "format/provenance.h"

int jsonout_value(FILE *out, json_t *value)
{
	int err;

	if (!value)
		return -ENOMEM;
	err = json_dumpf(value, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	json_decref(value);
	/* Errors of the stream are found at the flush. */
	return err < 0 && !ferror(out) ? -ENOMEM : 0;
}

int jsonout_string(FILE *out, const char *s)
{
	return jsonout_value(out, provenance_string(s));
}
