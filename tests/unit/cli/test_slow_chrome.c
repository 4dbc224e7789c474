// SPDX-License-Identifier: BSD-2-Clause
/* slow_chrome: each call is a balanced track in order of time, whatever the daemon's JSON contains. */
#include "slow_chrome.h"

#include <string.h>

#include "harness/test.h"

#define HEAD                                                                                       \
	"{\"seen\":3,\"functions\":[{\"file\":\"/a/b.py\",\"line\":7,\"name\":\"handle\"},"        \
	"{\"file\":\"/a/\\\"c.py\",\"line\":9,\"name\":\"<script>\\u001b[31m\"}],\"calls\":["
#define CALL(start, wall, steps)                                                                   \
	"{\"pid\":42,\"tid\":43,\"thread\":\"worker\",\"start_unix_ns\":" start                    \
	",\"wall_ns\":" wall ",\"nodes\":[{\"function\":0,\"parent\":-1}],\"steps\":" steps "}"

static json_t *chrome(const char *text)
{
	json_t *result = json_loads(text, 0, NULL), *ret;
	json_error_t error;
	char *data = NULL;
	size_t size;
	FILE *out = open_memstream(&data, &size);

	cr_assert(result, "%s", text);
	assert_ok(slow_chrome(result, out));
	fclose(out);
	ret = json_loads(data, 0, &error);
	cr_assert(ret, "%s: %s", error.text, data);
	json_decref(result);
	free(data);
	return ret;
}

/* "track B ts name; track E ts; …" */
static char *events_of(const char *text)
{
	json_t *root = chrome(text), *e;
	char *data = NULL;
	size_t size, i;
	FILE *out = open_memstream(&data, &size);

	json_array_foreach(json_object_get(root, "traceEvents"), i, e)
	{
		const char *kind = json_string_value(json_object_get(e, "ph"));
		const json_t *name = json_object_get(e, "name");

		cr_assert_eq(json_integer_value(json_object_get(e, "pid")), 42);
		if (*kind == 'M')
			name = json_object_get(json_object_get(e, "args"), "name");
		fprintf(out, "%s%d %s", i ? "; " : "",
			(int)json_integer_value(json_object_get(e, "tid")), kind);
		if (*kind != 'M')
			fprintf(out, " %.3f", json_number_value(json_object_get(e, "ts")));
		if (name)
			fprintf(out, " %s", json_string_value(name));
	}
	fclose(out);
	json_decref(root);
	return data;
}

static void expect(const char *text, const char *want)
{
	char *events = events_of(text);

	cr_assert_str_eq(events, want);
	free(events);
}

Test(slow_chrome, tracks)
{
	expect(HEAD CALL("5000", "2500", "[[0,0],[1000,1],[2000],[2500]]") "," CALL(
		       "4000", "900", "[[0,0],[900]]") "]}",
	       "1 M #1 handle, 0.0 ms, thread 43 worker; 1 B 1.000 handle; "
	       "1 B 2.000 <script>\033[31m; 1 E 3.000; 1 E 3.500; "
	       "2 M #2 handle, 0.0 ms, thread 43 worker; 2 B 0.000 handle; 2 E 0.900");
	check_no_leaks();
}

/* A call that still runs, or whose later steps are missing */
Test(slow_chrome, open_frames_end_with_the_call)
{
	expect(HEAD CALL("4000", "5000000", "[[0,0],[1000,1]]") "]}",
	       "1 M #1 handle, 5.0 ms, thread 43 worker; 1 B 0.000 handle; "
	       "1 B 1.000 <script>\033[31m; 1 E 5000.000; 1 E 5000.000");
	check_no_leaks();
}

Test(slow_chrome, hostile)
{
	expect(HEAD CALL("0", "-5", "[[900],[500,0],[100,99],[-7],[\"x\"],7,[]]") "]}",
	       "1 M #1 handle, 0.0 ms, thread 43 worker; 1 B 0.900 handle; 1 B 0.900 ; "
	       "1 E 0.900; 1 E 0.900");
	json_decref(chrome("{}"));
	json_decref(chrome("{\"calls\":7,\"functions\":7}"));
	json_decref(chrome("{\"calls\":[7,[],{\"steps\":{}}]}"));
	check_no_leaks();
}

/* What is not in the tracks is in otherData, as in a timeline. */
Test(slow_chrome, the_rest)
{
	json_t *root = chrome(HEAD "]}"), *other = json_object_get(root, "otherData");

	cr_assert_eq(json_integer_value(json_object_get(other, "seen")), 3);
	cr_assert_null(json_object_get(other, "functions"));
	json_decref(root);
	check_no_leaks();
}
