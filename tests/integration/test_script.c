// SPDX-License-Identifier: BSD-2-Clause
/*
 * The expected events of the self-test's program (verify/script.c) equal those that each
 * interpreter itself reports: by sys.monitoring if there is one, by sys.setprofile everywhere.
 */
#include "verify/script.h"

#include "harness/interpreters.h"
#include "harness/python.h"
#include "harness/test.h"

/*
 * Prints the events of one call of body(), in the notation of script_body. setprofile reports calls
 * and returns only. The code that observes is in another file, so its own events are left out.
 */
static const char asking[] =
	"import sys\n"
	"space, seen = {}, []\n"
	"exec(compile(sys.argv[1], 'scratch', 'exec'), space)\n"
	"def note(sign, code):\n"
	"    if code.co_filename in ('scratch', '<string>') and code.co_name != 'note':\n"
	"        seen.append(sign + code.co_name)\n"
	"def profiler(frame, event, arg):\n"
	"    if event in ('call', 'return'): note('>' if event == 'call' else '<', frame.f_code)\n"
	"def by_profile():\n"
	"    sys.setprofile(profiler); space['body'](); sys.setprofile(None)\n"
	"def by_monitoring():\n"
	"    m = sys.monitoring; e = m.events; every = 0; m.use_tool_id(2, 'x')\n"
	"    for event, sign in ((e.PY_START, '>'), (e.PY_RESUME, '>'), (e.PY_THROW, '^'),\n"
	"                        (e.PY_RETURN, '<'), (e.PY_YIELD, '~'), (e.PY_UNWIND, '!')):\n"
	"        every |= event\n"
	"        m.register_callback(2, event, lambda code, *a, sign=sign: note(sign, code))\n"
	"    m.set_events(2, every); space['body'](); m.set_events(2, 0)\n"
	"for i in range(3): space['body']()\n"
	"{'profile': by_profile, 'monitoring': by_monitoring}[sys.argv[2]]()\n"
	"print(' '.join(seen[seen.index('>body'):len(seen) - seen[::-1].index('<body')]))\n";

/* Writes the table's events for a version; alike: reduced to what setprofile reports. */
static void expected(char *out, size_t size, int minor, bool alike)
{
	const char *at = script_body;
	size_t n = 0;

	out[0] = '\0';
	while (*(at += strspn(at, " "))) {
		size_t len = strcspn(at, " :");
		const char *rest = at + len;
		long until = 99;
		char sign = *at;

		if (*rest == ':')
			until = strtol(rest + 1, (char **)&rest, 10);
		if (alike)
			sign = sign == '^' ? '>' : sign == '~' || sign == '!' ? '<' : sign;
		/* Neither of them reports the deallocation of code objects. */
		if (minor <= until && sign != '-')
			n += (size_t)snprintf(out + n, size - n, "%s%c%.*s", n ? " " : "", sign,
					      (int)len - 1, at + 1);
		cr_assert_lt(n, size);
		at = rest;
	}
}

static void ask(const struct interpreter *it, const char *how, char *out, size_t size)
{
	static char script[32768];
	int fd;
	pid_t pid;
	size_t n;

	cr_assert_null(strstr(script_functions, "\"\"\""));
	n = (size_t)snprintf(script, sizeof(script),
			     "import sys\nsys.argv = ['', r\"\"\"%s\"\"\", '%s']\n%s",
			     script_functions, how, asking);
	cr_assert_lt(n, sizeof(script));
	pid = interpreter_start(it, script, &fd);
	interpreter_line(fd, out, size);
	interpreter_end(pid, fd);
	cr_assert_gt(strlen(out), 100u);
}

static void compare(const struct interpreter *it, const char *how)
{
	static char want[8192], got[8192];

	expected(want, sizeof(want), it->minor, strcmp(how, "profile") == 0);
	ask(it, how, got, sizeof(got));
	cr_expect_str_eq(got, want, "%s by %s:\n%s\n%s", it->exe, how, got, want);
}

Test(script, is_what_interpreters_say)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v), compared = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].major != 3)
			continue;
		compare(&v[i], "profile");
		if (v[i].minor >= 12)
			compare(&v[i], "monitoring");
		compared++;
	}
	cr_assert_gt(compared, 0u);
	check_no_leaks();
}
