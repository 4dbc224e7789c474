// SPDX-License-Identifier: BSD-2-Clause
/* The index of a merged file: see disk_index.h. */
#include "history/disk_index.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "history/gz.h"

int disk_index_pack(const char *const *names, size_t n, void **ret, size_t *ret_size,
		    struct diag *diag)
{
	_cleanup_free_ char *text = NULL;
	json_t *list = json_array(), *index;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(names[i]));
	index = json_pack("{s:o}", "merged", list);
	text = index && json_array_size(list) == n ? json_dumps(index, JSON_COMPACT) : NULL;
	json_decref(index);
	if (!text)
		return diag_errno(diag, ENOMEM, "cannot merge intervals");
	return gz_pack_text(text, strlen(text), GZ_SMALL, ret, ret_size, diag);
}

struct reading {
	disk_index_fn fn;
	void *ctx;
	size_t size; /* of the index; 0: not read yet */
	int r;
};

/* A positive result ends the reading: the rest are intervals. */
static int read_first(void *ctx, const char *text, size_t n, size_t size, struct diag *diag)
{
	struct reading *rd = ctx;
	json_t *index = json_loadb(text, n, 0, NULL), *name;
	const json_t *list = json_object_get(index, "merged");
	size_t i;

	(void)diag;
	rd->r = json_is_array(list) ? 0 : -EBADMSG;
	rd->size = size;
	json_array_foreach(list, i, name)
	{
		if (json_is_string(name) && rd->fn)
			rd->fn(rd->ctx, json_string_value(name));
	}
	json_decref(index);
	return 1;
}

int disk_index_read(const void *data, size_t size, disk_index_fn fn, void *ctx, size_t *ret_size)
{
	struct reading rd = {.fn = fn, .ctx = ctx};
	struct diag why = {0};

	if (gz_unpack_text(data, size, "index", read_first, &rd, &why) != 1 || rd.r < 0)
		return -EBADMSG;
	*ret_size = rd.size;
	return 0;
}
