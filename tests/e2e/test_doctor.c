// SPDX-License-Identifier: BSD-2-Clause
/*
 * doctor on damaged interpreters. Anyone may have made the file: doctor either refuses it with
 * status 5 or finds the same sites as in the undamaged file; it never crashes or hangs. Here, some damage of each
 * kind; unit/plan/test_damaged.c does the same to more files, in many more ways, without the program around.
 */
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/traced.h"

#define CUTS	   16
#define SCRIBBLES  8
#define SCRIBBLE   4096
#define HEADER	   1024 /* every byte of this part matters, so more positions are tried */
#define MAX_ANSWER 65536

struct copy {
	char path[128];
	int fd;
	off_t size;
	char *sites; /* doctor's output about the sites of the undamaged file */
};

static struct pyprofd d;

static void setup(void)
{
	pyprofd_init(&d);
}

static void teardown(void)
{
	pyprofd_deinit(&d);
}

TestSuite(doctor, .init = setup, .fini = teardown);

/* Returns the output from "plan" on; the lines before it contain the path. */
static char *sites_of(const char *said)
{
	const char *plan = strstr(said, "\nplan");

	cr_assert(plan, "no plan in \"%s\"", said);
	return strdup(plan);
}

static void copy_open(struct copy *c, const struct interpreter *it)
{
	int from = open(it->file, O_RDONLY | O_CLOEXEC);
	struct stat st;
	off_t at = 0;
	char *said;

	cr_assert(from >= 0 && fstat(from, &st) == 0);
	pyprofd_file(&d, "copy", c->path, sizeof(c->path));
	c->size = st.st_size;
	c->fd = open(c->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	cr_assert(c->fd >= 0);
	while (at < st.st_size)
		cr_assert(sendfile(c->fd, from, &at, (size_t)(st.st_size - at)) > 0);
	close(from);
	said = ctl_ok(&d, "doctor", c->path, NULL);
	c->sites = sites_of(said);
	free(said);
}

static void copy_close(struct copy *c)
{
	close(c->fd);
	free(c->sites);
}

/* Returns whether doctor refused the file. */
static bool check_refused(const struct copy *c, bool same_sites, off_t where)
{
	struct ran r = ctl(&d, "doctor", c->path, NULL);
	bool refused = r.status == 5;
	char *sites;

	cr_assert(r.status == 0 || r.status == 5, "at %lld: status %d: %s", (long long)where,
		  r.status, r.err);
	cr_assert(r.nout < MAX_ANSWER && strlen(r.err) < 1000, "at %lld", (long long)where);
	if (refused) {
		const char *nl = strchr(r.err, '\n');

		cr_assert(nl && !nl[1], "not one line: %s", r.err);
	} else if (same_sites) {
		sites = sites_of(r.out);
		cr_assert_str_eq(sites, c->sites);
		free(sites);
	}
	ran_free(&r);
	return refused;
}

static off_t cut_at(const struct copy *c, int i)
{
	static const off_t fixed[] = {0, 1, 4, 15, 16, 63, 64, 65, 120, 512, 4095, 4096};
	const int n = sizeof(fixed) / sizeof(fixed[0]);

	return i < n ? fixed[i] : c->size * (i - n + 1) / (CUTS - n + 1);
}

/* Truncated copies: each is refused or has the same sites; one of at most 4096 bytes is refused. */
static void check_cuts(const struct interpreter *it)
{
	int refused = 0;
	struct copy c;

	copy_open(&c, it);
	for (int i = CUTS - 1; i >= 0; i--) {
		off_t at = cut_at(&c, i);

		assert_ok(ftruncate(c.fd, at));
		if (check_refused(&c, true, at))
			refused++;
		else
			cr_assert(at > 4096, "cut at %lld it cannot be whole", (long long)at);
	}
	fprintf(stderr, "%s: %d of %d truncated copies refused\n", it->file, refused, CUTS);
	copy_close(&c);
}

/* Random bytes that depend on the seed only */
static void scribble(char *bytes, size_t n, unsigned int seed)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)rand_r(&seed);
}

/* Overwrite n bytes, run doctor, restore them. Returns whether doctor refused the file. */
static bool corrupt(const struct copy *c, off_t at, size_t n)
{
	char was[SCRIBBLE], now[SCRIBBLE];
	ssize_t got = pread(c->fd, was, n, at);
	bool refused;

	cr_assert(got > 0);
	scribble(now, (size_t)got, (unsigned int)at);
	cr_assert(pwrite(c->fd, now, (size_t)got, at) == got);
	refused = check_refused(c, false, at);
	cr_assert(pwrite(c->fd, was, (size_t)got, at) == got);
	return refused;
}

static void check_corruption(const struct interpreter *it)
{
	int refused = 0;
	struct copy c;

	copy_open(&c, it);
	for (off_t at = 0; at < HEADER; at += HEADER / SCRIBBLES)
		refused += corrupt(&c, at, 8);
	for (int i = 0; i < SCRIBBLES; i++)
		refused += corrupt(&c, c.size * i / SCRIBBLES, SCRIBBLE);
	fprintf(stderr, "%s: %d of %d corrupted copies refused\n", it->file, refused,
		2 * SCRIBBLES);
	cr_assert(refused > 0);
	cr_assert(!check_refused(&c, true, 0), "it is whole again");
	copy_close(&c);
}

/*
 * For the interpreter with the smallest file, a distribution's stripped one, and the newest, a
 * shared library.
 */
static void each(void (*check)(const struct interpreter *it))
{
	struct interpreter v[INTERPRETERS_MAX], newest = traced_newest();
	size_t n = traced_interpreters(v);

	for (size_t i = 0; i < n; i++)
		if (strncmp(v[i].file, "/usr/bin/", 9) == 0 && strcmp(v[i].file, newest.file) != 0)
			check(&v[i]);
	check(&newest);
}

Test(doctor, truncated_copies)
{
	each(check_cuts);
}

Test(doctor, corrupted_copies)
{
	each(check_corruption);
}

/* With invalid instructions at a site, doctor must not report the same sites. */
static void check_site(const struct copy *c, off_t offset)
{
	static const char no_code[] = {6, 6, 6, 6, 6, 6, 6, 6};
	char was[sizeof(no_code)];
	struct ran r;

	cr_assert(pread(c->fd, was, sizeof(was), offset) == sizeof(was));
	cr_assert(pwrite(c->fd, no_code, sizeof(was), offset) == sizeof(was));
	r = ctl(&d, "doctor", c->path, NULL);
	cr_assert(r.status == 5 || (r.status == 0 && !strstr(r.out, c->sites)),
		  "%#llx is a site still", (unsigned long long)offset);
	ran_free(&r);
	cr_assert(pwrite(c->fd, was, sizeof(was), offset) == sizeof(was));
}

/* Lines of sites are indented: "  leave     0x0012b3b9 ...". */
static void check_sites(const struct interpreter *it)
{
	struct copy c;
	int n = 0;

	copy_open(&c, it);
	for (const char *line = c.sites; (line = strstr(line, "\n  ")) != NULL; line++) {
		const char *offset = line + strcspn(line, "x");

		if (offset - line < 20) {
			check_site(&c, (off_t)strtoull(offset + 1, NULL, 16));
			n++;
		}
	}
	cr_assert(n >= 4, "%d sites", n);
	copy_close(&c);
}

Test(doctor, no_code_at_a_site)
{
	each(check_sites);
}

/* The interpreter's file was replaced by an upgrade; the process's own file can still be read. */
Test(doctor, an_interpreter_without_its_file)
{
	char text[16], exe[128];
	struct traced t;
	struct copy c;

	if (access("/usr/bin/python3.11", R_OK) != 0)
		cr_skip_test("needs a python3.11 in /usr/bin");
	copy_open(&c, &(struct interpreter){.file = "/usr/bin/python3.11"});
	close(c.fd);
	snprintf(exe, sizeof(exe), "%s", c.path);
	traced_ready(&t, text, exe, "deep.py", NULL);
	assert_ok(unlink(exe));
	free(ctl_ok(&d, "doctor", text, NULL));
	traced_go(&t);
	traced_expect(&t, "done");
	traced_finish(&t);
	free(c.sites);
}

/* objects, which inspects a process like doctor: a census, a difference, and refused processes. */
Test(doctor, objects)
{
	struct interpreter it = traced_newest();
	char text[16], saved[128];
	struct traced t;
	char *said;

	traced_ready(&t, text, it.exe, "deep.py", NULL);
	pyprofd_file(&d, "objects.json", saved, sizeof(saved));
	free(ctl_ok(&d, "objects", text, "--json", "-o", saved, NULL));
	said = ctl_ok(&d, "objects", text, "--sort", "size", "-l", "3", NULL);
	cr_assert(strstr(said, "  function\n") && strstr(said, "more types"), "%s", said);
	free(said);
	said = ctl_ok(&d, "objects", text, "--since", saved, NULL);
	cr_assert(strstr(said, "seconds before") && !strstr(said, "function"), "%s", said);
	free(said);
	ctl_fails(&d, 2, "mutually exclusive", "objects", text, "--since", saved, "--diff", "1s",
		  NULL);
	ctl_fails(&d, 2, "not a saved census", "objects", text, "--since", it.exe, NULL);
	ctl_fails(&d, 2, "invalid pid", "objects", "x", NULL);
	traced_go(&t);
	traced_expect(&t, "done");
	traced_finish(&t);
	ctl_fails(&d, 3, "no process", "objects", text, NULL);
}
