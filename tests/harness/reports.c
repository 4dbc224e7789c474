// SPDX-License-Identifier: BSD-2-Clause
/* Reports and random snapshots: see reports.h. */
#include "harness/reports.h"

#include <string.h>

#include "format/names.h"
#include "harness/snapshot_builder.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"

char *report_new(const char *format, const struct snapshot *s, const struct format_opts *o,
		 size_t *size)
{
	const struct format *f = format_find(format);
	struct diag diag = {0};
	char *ret = NULL;
	size_t n;
	FILE *out = open_memstream(&ret, &n);

	cr_assert(f && out);
	assert_diag_ok(format_write(f, s, o, out, &diag), &diag);
	assert_ok(fclose(out));
	if (size)
		*size = n;
	return ret;
}

void report_save(const char *format, const struct snapshot *s, const struct format_opts *o,
		 const char *dir, const char *name)
{
	_cleanup_fclose_ FILE *out = NULL;
	_cleanup_free_ char *report = NULL;
	char path[512];
	size_t n;

	report = report_new(format, s, o, &n);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "w");
	cr_assert(out && fwrite(report, 1, n, out) == n);
}

char *report_read(const char *format, const struct snapshot *s, const struct format_opts *o,
		  const char *name, const char *script, const char *arg)
{
	char *dir = temp_dir_new(), *out;
	const char *argv[] = {"python3", "-c", script, dir, arg, NULL};

	report_save(format, s, o, dir, name);
	out = tool_run(argv);
	temp_dir_remove(dir);
	return out;
}

unsigned int random_below(unsigned int *seed, unsigned int n)
{
	return (unsigned int)rand_r(seed) % n;
}

static const char *const files[] = {"app.py",
				    "/srv/app/views.py",
				    "/srv/app/models.py",
				    "/usr/lib/python3/json/decoder.py",
				    "<string>",
				    "<frozen importlib._bootstrap>",
				    "/srv/\xc3\xa9t\xc3\xa9.py",
				    "C:\\app\\main.py",
				    "~"};
static const char *const names[] = {"main",
				    "run",
				    "f",
				    "g",
				    "<lambda>",
				    "<module>",
				    "<listcomp>",
				    "_wrap",
				    "na\xc3\xafve",
				    "\xe6\x97\xa5\xe6\x9c\xac",
				    "\xf0\x9d\x94\x98",
				    "it's"};

static uint32_t random_func(struct snapshot_builder *b, unsigned int *seed)
{
	const char *file = files[random_below(seed, sizeof(files) / sizeof(*files))];
	const char *name = names[random_below(seed, sizeof(names) / sizeof(*names))];
	int line = strcmp(file, "~") == 0 ? 0 : (int)random_below(seed, 30) * 7;

	return snapshot_builder_func(b, file, line, name, random_below(seed, 3) ? NULL : "A.x");
}

/* Times or counts of all magnitudes, including zero. */
static uint64_t random_magnitude(unsigned int *seed, unsigned int digits)
{
	uint64_t limit = 1;

	for (unsigned int n = random_below(seed, digits); n > 0; n--)
		limit *= 10;
	return ((uint64_t)rand_r(seed) << 31 | (uint64_t)rand_r(seed)) % limit;
}

static void random_thread(struct snapshot_builder *b, unsigned int *seed, uint32_t pid,
			  uint32_t tid)
{
	uint32_t contexts[64], n = 1;
	unsigned int total = 1 + random_below(seed, 62);

	contexts[0] = snapshot_builder_thread(b, pid, tid, "worker");
	while (n <= total) {
		uint32_t parent = contexts[random_below(seed, n)];
		uint64_t cpu = random_magnitude(seed, 12);

		contexts[n++] = snapshot_builder_node(b, parent, random_func(b, seed),
						      random_magnitude(seed, 12), cpu,
						      cpu + random_magnitude(seed, 12), 0);
	}
}

struct snapshot *snapshot_random(unsigned int seed)
{
	struct snapshot_builder *b = snapshot_builder_new();
	unsigned int threads;

	rand_r(&seed);
	threads = 1 + random_below(&seed, 3);
	snapshot_builder_target(b, 42);
	for (unsigned int i = 0; i < threads; i++)
		random_thread(b, &seed, 42, 42 + i);
	return snapshot_builder_finish(b);
}

const char *const hostile_names[] = {
	"two\nlines",
	"return\rto the start",
	"\033[2J\033]0;title\007",
	"csi \xc2\x9b"
	"31m",
	"right-to-left \xe2\x80\xaetxet",
	"\xe2\x81\xa6isolate\xe2\x81\xa9",
	"line\xe2\x80\xa8separator\xe2\x80\xa9",
	"zero\xe2\x80\x8bwidth\xef\xbb\xbf",
	"tag \xf3\xa0\x81\x81",
	"invalid \xff\xfe\x80",
	"overlong \xc0\xaf \xe0\x80\xaf",
	"cut off \xe6\x97",
	"surrogate \xed\xb3\xbf",
	"too large \xf5\x80\x80\x80 \xf4\x90\x80\x80",
	"quotes \" ' ` and \\",
	"semi;colon, comma = ( ) { } [ ] < > & % $",
	"\t\v\f\b\177",
	"",
	" ",
	"%s%n%x",
	"<script>document.title='harmed'</script>",
	"</script><script>document.title='harmed'</script>",
	"<!-- <script>",
	"--> ]]> <![CDATA[ </title></style></textarea>",
	"<img src=x onerror=\"document.title='harmed'\">",
	"\"><svg onload=document.title='harmed'>",
	"&lt;b&gt; &#x202e; &amp;",
	"javascript:document.title='harmed'",
	"${document.title='harmed'}{{7*7}}",
	"__proto__",
	"constructor",
	"@DATA@",
	NULL,
};

struct snapshot *snapshot_hostile(void)
{
	struct snapshot_builder *b = snapshot_builder_new();
	static char longest[10241];
	struct snapshot *s;
	uint32_t root;

	snapshot_builder_target(b, 42);
	root = snapshot_builder_thread(b, 42, 42, hostile_names[2]);
	for (size_t i = 0; hostile_names[i]; i++) {
		uint32_t func = snapshot_builder_func(b, hostile_names[i], (int)i, hostile_names[i],
						      hostile_names[i]);

		root = snapshot_builder_node(b, root, func, 1, 1000 * (i + 1), 5000, 0);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	snapshot_builder_node(b, root, snapshot_builder_func(b, "l", 1, longest, NULL), 1, 1, 1, 0);
	snapshot_builder_node(b, root, snapshot_builder_func(b, "", 1, "", NULL), 1, 1, 1, 0);
	s = snapshot_builder_finish(b);
	s->funcs[s->nfuncs - 1].filename = NULL;
	s->funcs[s->nfuncs - 1].name = NULL;
	s->targets[0].cmdline = longest;
	s->targets[0].exe = hostile_names[0];
	s->targets[0].python_version = hostile_names[4];
	s->targets[0].build_id = NULL;
	s->host = hostile_names[9];
	return s;
}

bool report_harmless(const char *report, size_t size)
{
	const char *p = report;
	uint32_t cp;

	if (strlen(report) != size)
		return false;
	while ((cp = utf8_next(&p))) {
		/* U+FFFD itself has three bytes; an invalid byte has one. */
		if (cp == 0xfffd && strncmp(p - 3, "\xef\xbf\xbd", 3) != 0)
			return false;
		if ((cp < 0x20 && cp != '\n') || (cp >= 0x80 && cp < 0xa0))
			return false;
		if ((cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
		    (cp >= 0x2060 && cp <= 0x206f) || (cp >= 0xd800 && cp <= 0xdfff))
			return false;
	}
	return true;
}
