// SPDX-License-Identifier: BSD-2-Clause
/* The name of the service that a process belongs to: see service.h. */
#include "continuous/service.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct word {
	const char *at;
	int n;
};

/* The next argument; n 0: there is none. */
static struct word next_word(const char **p)
{
	struct word w;

	*p += strspn(*p, " ");
	w = (struct word){*p, (int)strcspn(*p, " ")};
	*p += w.n;
	return w;
}

static bool ends_with(const char *text, const char *ending)
{
	size_t n = strlen(text), m = strlen(ending);

	return n > m && strcmp(text + n - m, ending) == 0;
}

static bool is_service(const char *unit)
{
	return ends_with(unit, ".service") && strncmp(unit, "user@", 5) != 0;
}

static void set(char out[SERVICE_MAX], struct word w)
{
	const char *slash = memrchr(w.at, '/', (size_t)w.n);

	if (slash && slash + 1 < w.at + w.n) {
		w.n -= (int)(slash + 1 - w.at);
		w.at = slash + 1;
	}
	snprintf(out, SERVICE_MAX, "%.*s", w.n, w.at);
	if (ends_with(out, ".py"))
		out[strlen(out) - 3] = '\0';
}

/* Does this option of the interpreter have its value in the next argument? */
static bool takes_value(struct word w)
{
	return w.n == 2 && (w.at[1] == 'W' || w.at[1] == 'X');
}

/* A module, a script, or -c. The value of -c is code. */
static bool of_options(const char *p, char out[SERVICE_MAX])
{
	for (struct word w = next_word(&p); w.n; w = next_word(&p)) {
		if (w.at[0] != '-') {
			set(out, w);
			return true;
		}
		if (w.n > 1 && w.at[1] != '-' && w.at[w.n - 1] == 'm') {
			set(out, next_word(&p));
			return *out != '\0';
		}
		if (w.n > 1 && w.at[1] != '-' && memchr(w.at, 'c', (size_t)w.n))
			return false;
		if (takes_value(w))
			(void)next_word(&p);
	}
	return false;
}

static bool is_python(struct word program)
{
	const char *slash = memrchr(program.at, '/', (size_t)program.n);
	const char *base = slash ? slash + 1 : program.at;

	return program.at + program.n - base >= 6 && strncmp(base, "python", 6) == 0;
}

/* "gunicorn: worker [web]" is a title that the process has set. */
static void of_command(const char *command, char out[SERVICE_MAX])
{
	const char *p = command;
	struct word program = next_word(&p);

	if (!program.n || (is_python(program) && of_options(p, out)))
		return;
	if (program.n > 1 && program.at[program.n - 1] == ':')
		program.n--;
	set(out, program);
}

void service_name(const struct cgroup_place *place, const char *command, char out[SERVICE_MAX])
{
	*out = '\0';
	if (is_service(place->unit))
		snprintf(out, SERVICE_MAX, "%.*s", (int)(strlen(place->unit) - strlen(".service")),
			 place->unit);
	else if (place->container[0])
		snprintf(out, SERVICE_MAX, "%.12s", place->container);
	else
		of_command(command, out);
	if (!*out)
		snprintf(out, SERVICE_MAX, "python");
}
