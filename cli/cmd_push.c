// SPDX-License-Identifier: BSD-2-Clause
/* push: send a profile to a receiver, once: the daemon's, or a saved one without a daemon. */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "format/format.h"
#include "push/kinds.h"
#include "push/labels.h"
#include "push/options.h"
#include "query.h"
#include "snapshot/load.h"
#include "snapshot/pseudo.h"

struct push_cmd {
	struct push_options push;
	pid_t pid;
};

static const struct opt opts[] = {
	{"pid", 'p', OPT_PID, offsetof(struct push_cmd, pid), "PID", "only this process"},
	PUSH_OPTION_ROWS("", struct push_cmd, push),
	{NULL},
};

struct push {
	const struct cmd_call *call;
	const struct push_cmd *o;
	const struct push_kind *kind;
	struct transport *transport;
	unsigned int sent;
};

/* ---- the profile ---- */

/* A process of a snapshot as a snapshot of its own */
static int extract(const struct snapshot *s, uint32_t pid, struct snapshot **ret, struct diag *diag)
{
	const struct format_opts fo = {.clock = s->clock, .filter = {.pid = pid}};
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return diag_errno(diag, errno, "cannot push");
	r = format_write(format_find("json"), s, &fo, out, diag);
	if (fclose(out) != 0 && r == 0)
		r = diag_errno(diag, errno, "cannot push");
	return r < 0 ? r : snapshot_parse(text, size, "the profile", ret, diag);
}

/* Takes s. Its id is new: the same snapshot pushed twice counts twice. */
static int make_interval(struct snapshot *s, const char *service, struct interval **ret,
			 struct diag *diag)
{
	_cleanup_(interval_freep) struct interval *iv = NULL;
	uint64_t start = s->ntargets ? s->targets[0].start_unix_ns : 0;
	uint64_t end = s->ntargets ? s->targets[0].end_unix_ns : 0;
	uint8_t id[INTERVAL_ID_BYTES];

	if (getrandom(id, sizeof(id), 0) != sizeof(id)) {
		snapshot_free(s);
		return diag_errno(diag, errno, "cannot push");
	}
	iv = interval_new(id, start, end > start ? end : start, s);
	if (!iv || push_set_labels(iv, service) < 0)
		return diag_errno(diag, ENOMEM, "cannot push");
	*ret = TAKE_PTR(iv);
	return 0;
}

/* ---- sending ---- */

static int send_interval(struct push *p, const struct interval *iv, struct diag *diag)
{
	_cleanup_(push_request_freep) struct push_request *rq = NULL;
	const char *service = interval_label(iv, INTERVAL_SERVICE);
	const char *pid = interval_label(iv, INTERVAL_PID);
	struct push_verdict v;
	int r = p->kind->encode(iv, &rq, diag);

	if (r < 0)
		return r;
	transport_send(p->transport, rq, &v);
	if (v.result != PUSH_DONE)
		return diag_set(diag, -EIO, PYP_EXIT_FAILURE,
				v.result == PUSH_REFUSE ? "the receiver does not accept it"
							: "try again later",
				"the profile was not sent: %s", v.message);
	p->sent++;
	fprintf(p->call->out, "sent %s (process %s): %zu bytes, HTTP %" PRIu32 "%s%s\n",
		service ? service : "-", pid ? pid : "-", rq->nbody, v.status,
		v.message[0] ? "; " : "", v.message);
	return 0;
}

static int send_target(struct push *p, const struct snapshot *all, uint32_t pid, struct diag *diag)
{
	_cleanup_(interval_freep) struct interval *iv = NULL;
	struct snapshot *s = NULL;
	int r = extract(all, pid, &s, diag);

	if (r == 0)
		r = make_interval(s, p->o->push.service, &iv, diag);
	return r < 0 ? r : send_interval(p, iv, diag);
}

/* Children that have ended and were added up have no process id, and are left out. */
static int send_snapshot(struct push *p, const struct snapshot *s, struct diag *diag)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < s->ntargets; i++) {
		uint32_t pid = s->targets[i].pid;

		if (pid && (!p->o->pid || pid == (uint32_t)p->o->pid))
			r = send_target(p, s, pid, diag);
	}
	if (r == 0 && !p->sent)
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "", "no process to be sent");
	return r;
}

static int read_file(const char *path, char **ret, size_t *ret_size, struct diag *diag)
{
	_cleanup_fclose_ FILE *in = fopen(path, "re"), *out = NULL;
	_cleanup_free_ char *text = NULL;
	char part[65536];
	size_t n, all = 0;

	if (!in)
		return diag_errno(diag, errno, "cannot open '%s'", path);
	out = open_memstream(&text, ret_size);
	while (out && (n = fread(part, 1, sizeof(part), in)) > 0 && all < SNAPSHOT_FILE_MAX_BYTES)
		all += fwrite(part, 1, n, out);
	if (ferror(in) || !out || fflush(out) != 0)
		return diag_errno(diag, errno ? errno : EIO, "cannot read '%s'", path);
	fclose(TAKE_PTR(out));
	*ret = TAKE_PTR(text);
	return 0;
}

static int send_parsed(struct push *p, const char *text, size_t size, const char *path,
		       struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	int r = snapshot_parse(text, size, path, &s, diag);

	/* Files of earlier versions lack these rows. */
	if (r == 0 && snapshot_pseudo(s) < 0)
		r = diag_errno(diag, ENOMEM, "cannot read '%s'", path);
	return r < 0 ? r : send_snapshot(p, s, diag);
}

/* An interval keeps its id, so that a receiver that has it already can notice. */
static int send_file(struct push *p, const char *path, struct diag *diag)
{
	_cleanup_(interval_freep) struct interval *iv = NULL;
	_cleanup_free_ char *text = NULL;
	struct diag why = {0};
	size_t size = 0;
	int r = read_file(path, &text, &size, diag);

	if (r < 0)
		return r;
	r = interval_parse(text, size, path, &iv, &why);
	if (r == -EINVAL)
		return send_parsed(p, text, size, path, diag);
	if (r < 0)
		return diag_set(diag, r, why.exit, why.hint, "%s", why.msg);
	if (p->o->push.service && interval_set_label(iv, INTERVAL_SERVICE, p->o->push.service) < 0)
		return diag_errno(diag, ENOMEM, "cannot push");
	return send_interval(p, iv, diag);
}

static int send_daemons(struct push *p, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	int r = query_fetch(p->call, p->o->pid, 0, &s, diag);

	return r < 0 ? r : send_snapshot(p, s, diag);
}

static int set_up(struct push *p, const char *address, struct diag *diag)
{
	const struct transport_opts *to = &p->o->push.transport;
	struct transport_secrets secrets;
	struct push_url url;
	int r = push_url_parse(address, &url, diag);

	if (r < 0)
		return r;
	p->kind = push_kind_find(url.kind, diag);
	r = p->kind ? transport_check(&url, to, diag) : -EINVAL;
	if (r == 0)
		r = transport_read_secrets(to, &secrets, diag);
	if (r < 0)
		return r;
	r = transport_new(&url, p->kind, to, &secrets, &p->transport, diag);
	transport_secrets_deinit(&secrets);
	return r;
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	struct push p = {.call = call, .o = call->opts};
	int r = set_up(&p, call->operands[call->noperands - 1], diag);

	if (r == 0)
		r = call->noperands == 2 ? send_file(&p, call->operands[0], diag)
					 : send_daemons(&p, diag);
	transport_free(p.transport);
	return r;
}

const struct cmd cmd_push = {
	.name = "push",
	.operands = "[FILE] URL",
	.summary = "Send a profile to Pyroscope or an OTLP receiver",
	.opts = opts,
	.opts_size = sizeof(struct push_cmd),
	.min_operands = 1,
	.max_operands = 2,
	.run = run,
};
