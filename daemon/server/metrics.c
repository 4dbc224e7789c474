// SPDX-License-Identifier: BSD-2-Clause
/*
 * Targets and clients as OpenMetrics text: see metrics.h. Each metric family is complete (TYPE,
 * HELP, all samples) before the next begins; counters end in _total; the text ends with # EOF.
 */
#include "server/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8_clean.h"
#include "pyprof/version.h"

struct family {
	const char *name;
	const char *type;
	const char *help;
	size_t offset; /* offset of a uint64_t or uint32_t in struct session_status */
	bool wide;     /* uint64_t */
	bool seconds;  /* nanoseconds, exported as seconds */
};

#define FIELD64(f) .offset = offsetof(struct session_status, f), .wide = true
#define FIELD32(f) .offset = offsetof(struct session_status, f)

static const struct family families[] = {
	{"pyprofd_events", "counter", "Traced calls and returns.", FIELD64(events)},
	{"pyprofd_lost_events", "counter", "Calls and returns lost.", FIELD64(lost)},
	{"pyprofd_unmatched_events", "counter", "Events that did not match any stack.",
	 FIELD64(unmatched)},
	{"pyprofd_unstarted_frames", "counter", "Frames unwound before they started.",
	 FIELD64(unstarted)},
	{"pyprofd_traced_seconds", "counter", "Time with probes attached.", FIELD64(traced_ns),
	 .seconds = true},
	{"pyprofd_threads", "gauge", "Traced threads.", FIELD32(threads)},
	{"pyprofd_functions", "gauge", "Traced functions.", FIELD32(funcs)},
	{"pyprofd_contexts", "gauge", "Nodes of the calling-context tree.", FIELD32(nodes)},
};

bool metrics_want_plain(const char *accept)
{
	return accept && strstr(accept, "text/plain") &&
	       !strstr(accept, "application/openmetrics-text");
}

static uint64_t family_value(const struct family *f, const struct session_status *st)
{
	const char *p = (const char *)st + f->offset;

	return f->wide ? *(const uint64_t *)p : *(const uint32_t *)p;
}

/* The older format has no type for information, and names what is in the lines: the suffix, too. */
static void write_head(const struct metrics_out *out, const char *name, const char *type,
		       const char *unit, const char *help)
{
	bool info = strcmp(type, "info") == 0, counter = strcmp(type, "counter") == 0;
	const char *suffix = !out->plain ? "" : info ? "_info" : counter ? "_total" : "";

	fprintf(out->f, "# TYPE %s%s %s\n", name, suffix, out->plain && info ? "gauge" : type);
	if (unit && !out->plain)
		fprintf(out->f, "# UNIT %s %s\n", name, unit);
	fprintf(out->f, "# HELP %s%s %s\n", name, suffix, help);
}

/* A label's value, without quotes */
static void write_escaped(FILE *out, const char *s)
{
	char clean[512];

	for (const char *p = utf8_clean(s, clean, sizeof(clean)); *p; p++) {
		if (*p == '\n') {
			fputs("\\n", out);
			continue;
		}
		if (*p == '"' || *p == '\\')
			putc('\\', out);
		putc(*p, out);
	}
}

static void write_family(const struct family *f, const struct session_status *st, size_t n,
			 const struct metrics_out *out)
{
	const char *suffix = f->type[0] == 'c' ? "_total" : "";

	write_head(out, f->name, f->type, f->seconds ? "seconds" : NULL, f->help);
	for (size_t i = 0; i < n; i++) {
		uint64_t v = family_value(f, &st[i]);

		fprintf(out->f, "%s%s{pid=\"%d\"} ", f->name, suffix, st[i].pid);
		if (f->seconds)
			fprintf(out->f, "%" PRIu64 ".%09" PRIu64 "\n", v / 1000000000,
				v % 1000000000);
		else
			fprintf(out->f, "%" PRIu64 "\n", v);
	}
}

static void write_targets(const struct session_status *st, size_t n, const struct metrics_out *out)
{
	write_head(out, "pyprofd_targets", "gauge", NULL, "Targets by state.");
	for (int state = SESSION_ATTACHED; state <= SESSION_ENDED; state++) {
		size_t count = 0;

		for (size_t i = 0; i < n; i++)
			count += (int)st[i].state == state;
		fprintf(out->f, "pyprofd_targets{state=\"%s\"} %zu\n",
			session_state_name((enum session_state)state), count);
	}
}

static void write_overhead(const struct session_status *st, size_t n, const struct metrics_out *out)
{
	write_head(out, "pyprofd_overhead_ratio", "gauge", "ratio",
		   "Probe time in the last second divided by the process's own CPU time.");
	for (size_t i = 0; i < n; i++)
		fprintf(out->f, "pyprofd_overhead_ratio{pid=\"%d\"} %.6f\n", st[i].pid,
			st[i].overhead);
}

static void write_info(const struct session_status *st, size_t n, const struct metrics_out *out)
{
	write_head(out, "pyprofd_target", "info", NULL, "State, version and command line.");
	for (size_t i = 0; i < n; i++) {
		fprintf(out->f, "pyprofd_target_info{pid=\"%d\",state=\"%s\",python=\"", st[i].pid,
			session_state_name(st[i].state));
		write_escaped(out->f, st[i].python_version);
		fputs("\",cmdline=\"", out->f);
		write_escaped(out->f, st[i].cmdline);
		fputs("\"} 1\n", out->f);
	}
}

static void write_drops(const struct session_status *st, size_t n, const struct metrics_out *out)
{
	static const char *const names[PYP_LOSS_MAX] = {
#define PYP_X(name, text) [PYP_LOSS_##name] = #name,
		PYP_LOSSES(PYP_X)
#undef PYP_X
	};

	write_head(out, "pyprofd_bpf_drops", "counter", NULL,
		   "Events and records dropped by the BPF programs.");
	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < PYP_LOSS_MAX; c++)
			fprintf(out->f,
				"pyprofd_bpf_drops_total{pid=\"%d\",reason=\"%s\"} %" PRIu64 "\n",
				st[i].pid, names[c], st[i].losses[c]);
}

static void write_clients(const struct dropped_clients *dropped, const struct metrics_out *out)
{
	const struct {
		const char *name;
		uint64_t n;
	} reasons[] = {
		{"late", dropped->late},
		{"unread", dropped->unread},
		{"crowded", dropped->crowded},
	};

	write_head(out, "pyprofd_dropped_clients", "counter", NULL,
		   "Connections closed: request late, response not read, too many of one user.");
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		fprintf(out->f, "pyprofd_dropped_clients_total{reason=\"%s\"} %" PRIu64 "\n",
			reasons[i].name, reasons[i].n);
}

static void write_refused(const struct refused_requests *n, const struct metrics_out *out)
{
	write_head(out, "pyprofd_refused_requests", "counter", NULL,
		   "Requests to the HTTP listener refused: without a valid token, of other sites.");
	fprintf(out->f,
		"pyprofd_refused_requests_total{reason=\"token\"} %" PRIu64 "\n"
		"pyprofd_refused_requests_total{reason=\"site\"} %" PRIu64 "\n",
		n->token, n->site);
}

void metrics_write(const struct session_status *st, size_t n, const struct dropped_clients *dropped,
		   const struct refused_requests *refused, const struct metrics_out *out)
{
	write_head(out, "pyprofd_build", "info", NULL, "Version of pyprofd.");
	fprintf(out->f, "pyprofd_build_info{version=\"%s\"} 1\n", PYPROF_VERSION);
	write_targets(st, n, out);
	write_info(st, n, out);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		write_family(&families[i], st, n, out);
	write_overhead(st, n, out);
	write_drops(st, n, out);
	write_clients(dropped, out);
	write_refused(refused, out);
	if (!out->plain)
		fputs("# EOF\n", out->f);
}
