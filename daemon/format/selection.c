// SPDX-License-Identifier: BSD-2-Clause
/* Selected rows of a table: see selection.h. */
#include "format/selection.h"

#include <errno.h>

#include "format/provenance.h"
#include "format/restrict.h"

const char *selection_default_sort(const struct snapshot *s, const struct view_filter *filter)
{
	unsigned int modes = 0;

	for (uint32_t i = 0; i < s->ntargets; i++)
		if (provenance_selects(s, filter, &s->targets[i]))
			modes |= snapshot_target_modes(&s->targets[i]);
	if (modes == 1u << MODE_COUNT)
		return "calls";
	return modes == 1u << MODE_SAMPLE ? "tottime" : "cumulative";
}

static int sort_table(struct selection *s, const struct table *t, const struct format_opts *o,
		      struct diag *diag)
{
	int err = sort_parse(o->sort, &s->sort, diag);

	return err < 0 ? err : sort_rows(&s->sort, o->reverse, t, &s->order, &s->n);
}

static int restrict_table(struct selection *s, const struct table *t, const struct format_opts *o,
			  struct diag *diag)
{
	_cleanup_(restrictions_freep) struct restrictions *restrictions = NULL;
	size_t size;
	FILE *notes;
	int err = restrictions_parse(o->restrict_, o->nrestrict, &restrictions, diag);

	if (err < 0)
		return err;
	notes = open_memstream(&s->notes, &size);
	if (!notes)
		return -ENOMEM;
	err = restrictions_apply(restrictions, t, s->order, &s->n, notes, diag);
	if (fclose(notes) != 0 && !err)
		err = -ENOMEM;
	return err;
}

int selection_init(struct selection *s, const struct table *t, const struct format_opts *o,
		   struct diag *diag)
{
	int err;

	*s = (struct selection){0};
	err = sort_table(s, t, o, diag);
	if (!err)
		err = restrict_table(s, t, o, diag);
	if (err < 0) {
		selection_deinit(s);
		*s = (struct selection){0};
	}
	return err;
}

void selection_deinit(struct selection *s)
{
	free(s->order);
	free(s->notes);
}
