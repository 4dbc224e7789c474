// SPDX-License-Identifier: BSD-2-Clause
/* Labels of intervals: names of services by command line. */
#include "push/labels.h"

#include "harness/snapshot_builder.h"
#include "harness/test.h"

Test(push_labels, service_of_a_command_line)
{
	static const char *const of[][2] = {
		{"python3 app.py", "app"},
		{"/usr/bin/python3.11 -u /srv/shop/main.py --port 80", "main"},
		{"python -W ignore -X dev -m gunicorn.app x", "gunicorn.app"},
		{"python3 -c import_this", "python3"},
		{"python3", "python3"},
		{"python3 -m", "python3"},
		{"/usr/bin/uwsgi --ini x", "uwsgi"},
		{"gunicorn: worker [app]", "gunicorn:"},
		{"", "python"},
		{"  \t\n ", "python"},
		{"python3 .py", ".py"},
		{"python3 /srv/dir/", "/srv/dir/"},
	};
	char out[PUSH_SERVICE_MAX], text[600];

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		cr_assert_str_eq(push_service_of(of[i][0], out), of[i][1], "%s: %s", of[i][0], out);
	cr_assert_str_eq(push_service_of(NULL, out), "python");
	snprintf(text, sizeof(text), "python3 /%0500d.py", 1);
	cr_assert_eq(strlen(push_service_of(text, out)), PUSH_SERVICE_MAX - 1);
}

Test(push_labels, of_an_interval)
{
	struct interval *iv = interval_new((const uint8_t[INTERVAL_ID_BYTES]){1}, 1, 2,
					   snapshot_build("target 42\nthread 42 43 worker\n"));

	iv->snapshot->targets[0].cmdline = "python3 shop.py";
	assert_ok(push_set_labels(iv, NULL));
	cr_assert_str_eq(interval_label(iv, INTERVAL_SERVICE), "shop");
	cr_assert_str_eq(interval_label(iv, INTERVAL_PID), "42");
	cr_assert(interval_label(iv, INTERVAL_HOST));
	assert_ok(push_set_labels(iv, "other"));
	cr_assert_str_eq(interval_label(iv, INTERVAL_SERVICE), "other");
	interval_free(iv);
	check_no_leaks();
}
