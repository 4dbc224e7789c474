// SPDX-License-Identifier: BSD-2-Clause
/*
 * Slow calls for the browser's tests, written by the product's own writer: `gen_slow DIR` makes
 * slow_calls.html, and slow_calls.json, which the tests compare it with. Needs neither a target nor
 * root.
 */
#include <jansson.h>
#include <stdio.h>

#include "base/diag.h"
#include "slow_html.h"

#define MS "000000"

/* A call with steps; one without; and one with a hostile name. */
static const char text[] =
	"{'id': 1, 'match': 'request', 'over_ns': 10" MS ", 'n': 10, 'clock': 'wall',"
	" 'elapsed_ns': 2000" MS ", 'active': true, 'seen': 40, 'over': 3, 'unknown_start': 2,"
	" 'refused': 0, 'interrupted': 0, 'unsearched': 0, 'program': 'pyprofctl test',"
	" 'host': 'testhost', 'kernel': 'Linux 6.1',"
	" 'targets': [{'pid': 42, 'cmdline': 'python app.py', 'python_version': '3.13.0'}],"
	" 'functions': [{'file': '/srv/app/views.py', 'line': 3, 'name': 'request'},"
	"               {'file': '/usr/lib/python3/dist-packages/db/very/long/path/query.py',"
	"                'line': 30, 'name': 'query'},"
	"               {'file': '/srv/app/locks.py', 'line': 7, 'name': 'take'},"
	"               {'file': '<string>', 'line': 1,"
	"                'name': '</script><script>alert(1)</script>\\u001b[2J'}],"
	" 'calls': ["
	"  {'pid': 42, 'tid': 43, 'thread': 'worker-1', 'start_unix_ns': 1700000000000" MS ","
	"   'running': false, 'wall_ns': 100" MS ", 'cpu_ns': 10" MS ", 'suspended_ns': 0,"
	"   'events': 8, 'gap': false, 'truncated': 0, 'nodes': ["
	"    {'function': 0, 'parent': -1, 'calls': 1, 'wall_ns': 10" MS ", 'cpu_ns': 10" MS ","
	"     'waits': {}},"
	"    {'function': 1, 'parent': 0, 'calls': 2, 'wall_ns': 80" MS ", 'cpu_ns': 0,"
	"     'waits': {'socket': 80" MS "}},"
	"    {'function': 2, 'parent': 0, 'calls': 1, 'wall_ns': 10" MS ", 'cpu_ns': 0,"
	"     'waits': {'lock': 10" MS "}}],"
	"   'steps': [[0, 0], [5" MS ", 1], [45" MS "], [50" MS ", 2], [60" MS "], [60" MS ", 1],"
	"             [100" MS "], [100" MS "]], 'steps_missing': 0},"
	"  {'pid': 42, 'tid': 44, 'thread': '', 'start_unix_ns': 1700000001000" MS ","
	"   'running': true, 'wall_ns': 40" MS ", 'cpu_ns': 1" MS ", 'suspended_ns': 1" MS ","
	"   'events': 4, 'gap': true, 'truncated': 2, 'nodes': ["
	"    {'function': 0, 'parent': -1, 'calls': 1, 'wall_ns': 10" MS ", 'cpu_ns': 1" MS "},"
	"    {'function': 1, 'parent': 0, 'calls': 1, 'wall_ns': 20" MS ", 'cpu_ns': 0},"
	"    {'function': 2, 'parent': 0, 'calls': 1, 'wall_ns': 10" MS ", 'cpu_ns': 0}]},"
	"  {'pid': 42, 'tid': 45, 'thread': 'w', 'start_unix_ns': 1700000002000" MS ","
	"   'running': false, 'wall_ns': 11" MS ", 'cpu_ns': 1" MS ", 'suspended_ns': 0,"
	"   'events': 2, 'gap': false, 'truncated': 0, 'nodes': ["
	"    {'function': 3, 'parent': -1, 'calls': 1, 'wall_ns': 11" MS ", 'cpu_ns': 1" MS "}],"
	"   'steps': [[0, 3], [11" MS "]], 'steps_missing': 0}]}";

static json_t *calls(void)
{
	char json[sizeof(text)];

	for (size_t i = 0; i < sizeof(text); i++)
		json[i] = text[i];
	for (char *c = json; *c; c++)
		if (*c == '\'')
			*c = '"';
	return json_loads(json, 0, NULL);
}

static FILE *file(const char *dir, const char *extension)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/slow_calls.%s", dir, extension);
	return fopen(path, "w");
}

int main(int argc, char **argv)
{
	json_t *all = calls();
	struct diag diag = {0};
	FILE *html, *json;
	int r;

	if (argc != 2 || !all) {
		fprintf(stderr, "usage: gen_slow DIR\n");
		return 2;
	}
	html = file(argv[1], "html");
	json = file(argv[1], "json");
	if (!html || !json)
		return 1;
	r = slow_html(all, html, &diag);
	if (r < 0)
		fprintf(stderr, "%s\n", diag.msg);
	json_dumpf(all, json, JSON_COMPACT);
	json_decref(all);
	return fclose(html) != 0 || fclose(json) != 0 || r < 0;
}
