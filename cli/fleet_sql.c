// SPDX-License-Identifier: BSD-2-Clause
/* Statements: see fleet_sql.h. */
#include "fleet_sql.h"

#include <errno.h>
#include <stdlib.h>

void fleet_sql_deinit(struct fleet_sql *s)
{
	fclosep(&s->out);
	free(s->text);
	*s = (struct fleet_sql){.n = 0};
}

int fleet_sql_open(struct fleet_sql *s, struct diag *diag)
{
	s->out = open_memstream(&s->text, &s->n);
	return s->out ? 0 : diag_errno(diag, errno, "cannot ask the database");
}

static int close_text(struct fleet_sql *s, struct diag *diag)
{
	int r = ferror(s->out) ? -ENOMEM : 0;

	if (fclose(TAKE_PTR(s->out)) != 0 || r < 0)
		return diag_errno(diag, ENOMEM, "cannot ask the database");
	return 0;
}

int fleet_sql_run(struct fleet_sql *s, struct fleet_client *c, struct fleet_answer *ret,
		  struct diag *diag)
{
	int r = close_text(s, diag);

	return r < 0 ? r : fleet_run(c, s->text, s->n, ret, diag);
}

int fleet_sql_insert(struct fleet_sql *s, struct fleet_client *c, const void *rows, size_t nrows,
		     struct diag *diag)
{
	int r = close_text(s, diag);

	return r < 0 ? r : fleet_insert(c, s->text, rows, nrows, diag);
}
