// SPDX-License-Identifier: BSD-2-Clause
/*
 * Targets that make outputs large: names of 48 KB that each calling context repeats, recursion that
 * gives each calling context its own stack. Each format is within the limit or refused; the daemon
 * stays small and keeps the data.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/format.h"
#include "harness/background.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "pyprof/exit_codes.h"

#define MIB	  (1024ll * 1024)
#define BOUND	  (512 * MIB) /* BODIES_MAX */
#define RSS_BOUND (256 * MIB)

static struct pyprofd d;
static struct traced t;

static void start(const char *depth, const char *length, const char *recursion)
{
	struct interpreter it = traced_newest();
	char pid[16];

	traced_ready(&t, NULL, it.exe, "long_names.py", depth, length, recursion, NULL);
	pyprofd_start(&d, "--pid", pid_text(pid, t.pid), "--no-verify", NULL);
	traced_go(&t);
	traced_expect(&t, "done");
}

static void teardown(void)
{
	if (d.pid)
		pyprofd_shutdown(&d);
	traced_stop(&t);
}

TestSuite(output, .fini = teardown);

/* Peak resident memory of the daemon in bytes */
static long long peak_rss(void)
{
	char path[64], line[256];
	long long kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", d.pid);
	f = fopen(path, "r");
	cr_assert(f);
	while (!kb && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kb = strtoll(line + 6, NULL, 10);
	fclose(f);
	cr_assert(kb > 0);
	return kb * 1024;
}

/* Returns the size of a format's output; -1: refused. */
static long long size_of(const char *format)
{
	char path[128];
	struct stat st;
	struct ran r;

	pyprofd_file(&d, "out", path, sizeof(path));
	/* A collapsed file has no contexts without time of their own. */
	r = ctl(&d, "snapshot", "--raw-times", "-f", format, "-o", path, NULL);
	if (r.status == 0) {
		assert_ok(stat(path, &st));
		unlink(path);
	} else {
		cr_assert(r.status == PYP_EXIT_FAILURE && strstr(r.err, "larger than 512 MiB"),
			  "%s: %d, %s", format, r.status, r.err);
		cr_assert(access(path, F_OK) < 0, "%s: a part was left", format);
		st.st_size = -1;
	}
	ran_free(&r);
	return st.st_size;
}

static void assert_data_kept(size_t functions)
{
	char *text = ctl_ok(&d, "snapshot", "-f", "json", NULL);
	json_t *root = json_loads(text, 0, NULL);

	cr_assert(root && json_array_size(json_object_get(root, "functions")) >= functions);
	json_decref(root);
	free(text);
	cr_assert(peak_rss() < RSS_BOUND, "the daemon took %lld MiB", peak_rss() / MIB);
}

/* 60 functions: 2.9 MB of names, which a collapsed file would repeat to 88 MB. */
Test(output, long_names_in_every_format)
{
	start("60", "48000", "0");
	for (const struct format *f = formats; f->name; f++) {
		long long size;

		if (f->flags & (FORMAT_OF_COUNTERS | FORMAT_OF_LINES))
			continue; /* no counters were enabled */
		size = size_of(f->name);
		cr_log_info("%s: %lld bytes", f->name, size);
		/* contains each name once or twice */
		cr_assert(size > 0 && size < 64 * MIB, "%s: %lld MiB", f->name, size / MIB);
	}
	assert_data_kept(60);
}

/* 40,000 calling contexts with stacks of their own, of which 512 frames are written. */
Test(output, deep_recursion_is_refused)
{
	start("1", "100", "40000");
	cr_assert(size_of("collapsed") == -1, "more than 512 MiB were sent");
	cr_assert(size_of("pprof") < BOUND && size_of("speedscope") < BOUND);
	assert_data_kept(1);
}

/* record's private daemon ends with it, so data too large for the format is saved as JSON. */
Test(output, refused_recording_is_kept)
{
	struct interpreter it = traced_newest();
	char pid[16], out[128], errors[128], *err, *file, *end;
	pid_t recorder;
	int status;

	pyprofd_init(&d);
	pyprofd_file(&d, "out.collapsed", out, sizeof(out));
	pyprofd_file(&d, "errors", errors, sizeof(errors));
	traced_ready(&t, NULL, it.exe, "long_names.py", "1", "100", "40000", NULL);
	setenv("TMPDIR", d.dir, 1);
	recorder = background_start(&d, errors, NULL,
				    (const char *const[]){"record", "--pid", pid_text(pid, t.pid),
							  "-d", "3600", "-o", out, NULL});
	/* Before, probes are attached to all sites for a moment as well, for the forecast. */
	background_until_traced(recorder, 1);
	traced_go(&t);
	traced_hear(&t, "done");
	traced_go(&t);
	/* It ends with the target. */
	status = background_end(recorder, 0);
	err = file_text(errors, NULL);
	cr_assert(err && status == PYP_EXIT_FAILURE, "%d: %s", status, err);
	file = strstr(err, "the recording is in '");
	cr_assert(file && strstr(err, "larger than 512 MiB"), "%s", err);
	file += strlen("the recording is in '");
	end = strchr(file, '\'');
	cr_assert(end);
	*end = '\0';
	free(ctl_ok(&d, "report", file, "-l", "1", NULL));
	free(err);
	pyprofd_deinit(&d);
}

/* The same for the daemon's -o */
Test(output, refused_profile_is_kept_at_the_end)
{
	struct interpreter it = traced_newest();
	char pid[16], out[128], *file, *end;
	struct ran r, ended;

	pyprofd_init(&d);
	pyprofd_file(&d, "out.collapsed", out, sizeof(out));
	setenv("TMPDIR", d.dir, 1);
	traced_ready(&t, NULL, it.exe, "long_names.py", "1", "100", "40000", NULL);
	pyprofd_launch(&d, "--pid", pid_text(pid, t.pid), "--no-verify", "--raw-times", "-o", out,
		       NULL);
	pyprofd_ready(&d);
	traced_go(&t);
	traced_expect(&t, "done");
	r = ctl(&d, "shutdown", NULL);
	cr_assert(r.status == PYP_EXIT_FAILURE && strstr(r.err, "larger than 512 MiB"), "%d: %s",
		  r.status, r.err);
	ended = pyprofd_wait(&d);
	cr_assert(ended.status == PYP_EXIT_FAILURE && access(out, F_OK) < 0);
	file = strstr(r.err, "the profile is in '");
	cr_assert(file, "%s", r.err);
	file += strlen("the profile is in '");
	end = strchr(file, '\'');
	cr_assert(end);
	*end = '\0';
	free(ctl_ok(&d, "report", file, "-l", "1", NULL));
	ran_free(&r);
	ran_free(&ended);
	pyprofd_deinit(&d);
}
