// SPDX-License-Identifier: BSD-2-Clause
/* The processes that a command is about: see pick.h. */
#include "pick.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/terminal.h"
#include "find/match.h"
#include "find/processes.h"
#include "render.h"

#define LISTED_MAX  20
#define COMMAND_MAX 60

/* One search: the list is read when it is first needed. */
struct search {
	const struct pick_opts *o;
	bool children, listed;
	struct processes list;
	bool *hit; /* a row of list.n */
	size_t denied;
	struct pick found;
	struct diag failed; /* the first failure, already reported */
};

static void search_deinit(struct search *s)
{
	processes_deinit(&s->list);
	free(s->hit);
}

void pick_report(const struct diag *why, struct diag *diag)
{
	log_diag(why, why->err);
	diag_set(diag, why->err, why->exit, NULL, "%s", "");
}

int pick_check(const struct pick_opts *o, size_t nwords, struct diag *diag)
{
	if (nwords || o->unit || o->container || o->port)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"give a pid or a name (see pyprofctl ps), --unit, --container or --port",
			"no process is given");
}

int pick_check_same(const struct picked *p, struct diag *diag)
{
	if (!p->starttime || !process_is_replaced(p->pid, p->starttime))
		return 0;
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "try again",
			"process %d has ended, and another one has its pid", (int)p->pid);
}

int pick_attach(const struct picked *p, struct client *c,
		int (*attach)(void *ctx, pid_t pid, struct diag *diag), void *ctx,
		struct diag *diag)
{
	int r = pick_check_same(p, diag);

	if (r == 0)
		r = attach(ctx, p->pid, diag);
	if (r < 0)
		return r;
	r = pick_check_same(p, diag);
	if (r < 0)
		client_detach(c, p->pid, NULL);
	return r;
}

static int add(struct search *s, pid_t pid, uint64_t starttime, struct diag *diag)
{
	for (size_t i = 0; i < s->found.n; i++)
		if (s->found.v[i].pid == pid)
			return 0;
	if (s->found.n == PICK_MAX)
		return diag_set(diag, -E2BIG, PYP_EXIT_USAGE, "use several commands",
				"more than %d processes", PICK_MAX);
	s->found.v[s->found.n++] = (struct picked){pid, starttime};
	return 0;
}

/* Get the list, with no process hit. */
static int list(struct search *s, struct diag *diag)
{
	int r = s->listed ? 0 : processes_list(&s->list, diag);

	if (r < 0)
		return r;
	if (!s->listed)
		s->hit = calloc(s->list.n + 1, sizeof(*s->hit));
	s->listed = true;
	if (!s->hit)
		return diag_errno(diag, ENOMEM, "cannot search the processes");
	memset(s->hit, 0, s->list.n * sizeof(*s->hit));
	s->denied = s->list.unreadable;
	return 0;
}

static size_t count(const struct search *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->list.n; i++)
		n += s->hit[i];
	return n;
}

static int not_found(const struct search *s, const char *what, struct diag *diag)
{
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS,
			s->denied && geteuid()
				? "run as root to search the processes of other users, too"
				: "`pyprofctl ps` lists the Python processes",
			"no Python process matches %s", what);
}

/* A line for each candidate, after the line with the error */
static int ambiguous(const struct search *s, const char *what, size_t n, struct diag *diag)
{
	struct diag why = {0};
	size_t listed = 0;

	diag_set(&why, -ENOTUNIQ, PYP_EXIT_USAGE, "give a pid, or --all",
		 "%zu Python processes match %s", n, what);
	pick_report(&why, diag);
	for (size_t i = 0; i < s->list.n && listed < LISTED_MAX; i++) {
		if (!s->hit[i])
			continue;
		log_error("%7d %.*s", (int)s->list.v[i].pid, COMMAND_MAX,
			  render_command(s->list.v[i].command));
		listed++;
	}
	if (n > listed)
		log_error("and %zu more", n - listed);
	return -ENOTUNIQ;
}

static void say_root(const struct search *s, const char *what, size_t children)
{
	for (size_t i = 0; i < s->list.n; i++)
		if (s->hit[i])
			log_warning(
				"process %d and %zu of its children match %s: using process %d; "
				"--follow-children (attach, record) or --all includes the "
				"children",
				(int)s->list.v[i].pid, children, what, (int)s->list.v[i].pid);
}

/* Add the hit processes, or find out which one is meant. what: "--port 80" */
static int take_hits(struct search *s, const char *what, struct diag *diag)
{
	size_t all = count(s), n = all;
	int r = 0;

	if (!all)
		return not_found(s, what, diag);
	if (!s->o->all || s->children)
		n = match_drop_children(&s->list, s->hit);
	if (n > 1 && !s->o->all)
		return ambiguous(s, what, n, diag);
	if (n < all && !s->children)
		say_root(s, what, all - n);
	for (size_t i = 0; r == 0 && i < s->list.n; i++)
		if (s->hit[i])
			r = add(s, s->list.v[i].pid, s->list.v[i].starttime, diag);
	return r;
}

typedef void (*match_fn)(const struct processes *l, const char *value, bool *hit);

/* what: "--unit web" */
static int by_text(struct search *s, match_fn match, const char *value, const char *what,
		   struct diag *diag)
{
	int r = list(s, diag);

	if (r < 0)
		return r;
	match(&s->list, value, s->hit);
	return take_hits(s, what, diag);
}

static int by_name(struct search *s, const char *name, struct diag *diag)
{
	char what[320];

	snprintf(what, sizeof(what), "the name '%.256s'", name);
	return by_text(s, match_name, name, what, diag);
}

static int by_unit(struct search *s, struct diag *diag)
{
	char what[320];

	snprintf(what, sizeof(what), "--unit %.256s", s->o->unit);
	return by_text(s, match_unit, s->o->unit, what, diag);
}

static int by_container(struct search *s, struct diag *diag)
{
	char what[320];

	snprintf(what, sizeof(what), "--container %.256s", s->o->container);
	return by_text(s, match_container, s->o->container, what, diag);
}

static int by_port(struct search *s, struct diag *diag)
{
	char what[64];
	int r = list(s, diag);

	if (r < 0)
		return r;
	s->denied += match_port(&s->list, (unsigned int)s->o->port, s->hit);
	snprintf(what, sizeof(what), "--port %u", (unsigned int)s->o->port);
	return take_hits(s, what, diag);
}

/* Report a failure, unless that is done, and go on. */
static void keep(struct search *s, int r, struct diag *why)
{
	if (r < 0 && why->msg[0])
		pick_report(why, &s->failed);
	else if (r < 0 && !s->failed.err)
		s->failed = *why;
}

/* "12x" is a mistyped pid; "2048.py" is a name. */
static bool is_number(const char *word)
{
	return !*word || (*word >= '0' && *word <= '9' && !strpbrk(word, "./"));
}

/* Refuse what cannot be meant before anything is done. */
static int check_words(char *const *words, size_t n, struct diag *diag)
{
	pid_t pid, other;

	for (size_t i = 0; i < n; i++) {
		bool number = is_number(words[i]);

		if (number && parse_pid(words[i], &pid) < 0)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
					"expected a process id or a name",
					"'%s' is not a process id", words[i]);
		for (size_t k = 0; number && k < i; k++)
			if (parse_pid(words[k], &other) == 0 && other == pid)
				return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
						"list each process once",
						"process %d is given twice", (int)pid);
	}
	return 0;
}

static void pick_words(struct search *s, char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct diag why = {0};
		pid_t pid = 0;
		int r;

		if (parse_pid(words[i], &pid) == 0)
			r = add(s, pid, 0, &why);
		else
			r = by_name(s, words[i], &why);
		keep(s, r, &why);
	}
}

int pick_processes(const struct pick_opts *o, char *const *words, size_t nwords, bool children,
		   struct pick *ret, struct diag *diag)
{
	_cleanup_(search_deinit) struct search s = {.o = o, .children = children};
	static int (*const by[])(struct search * s, struct diag * diag) = {by_unit, by_container,
									   by_port};
	const bool given[] = {o->unit, o->container, o->port};
	int r = pick_check(o, nwords, diag);

	ret->n = 0;
	if (r == 0)
		r = check_words(words, nwords, diag);
	if (r < 0)
		return r;
	pick_words(&s, words, nwords);
	for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
		struct diag why = {0};

		if (given[i])
			keep(&s, by[i](&s, &why), &why);
	}
	*ret = s.found;
	if (s.failed.err && diag && !diag->err)
		*diag = s.failed;
	return s.failed.err;
}
