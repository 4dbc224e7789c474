// SPDX-License-Identifier: BSD-2-Clause
/*
 * The inspector: finds a target's interpreter, plans its probes, sends the result, and then answers
 * questions until the daemon closes the channel. All its descriptors come from the opener.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inspect/answer.h"
#include "inspect/breaks.h"
#include "inspect/gils.h"
#include "inspect/helper.h"
#include "inspect/inspect.h"
#include "plan/gil.h"
#include "plan/own_code.h"
#include "python/lines.h"
#include "target/deadline.h"

/*
 * Files that are opened once, before the inspector may lose access or the target executes another
 * program.
 */
#define KEPT (1u << TARGET_MAPS | 1u << TARGET_AUXV | 1u << TARGET_ENVIRON | 1u << TARGET_MEM)

struct inspector {
	const struct inspect_job *job;
	const struct python *like; /* NULL: none */
	int chan, ask;
	int kept[TARGET_PARTS]; /* negative errno: cannot be opened */
	struct target target;	/* with target.access set to access */
	struct target_access access;
	struct inspect_result found;
	const struct python *python; /* found.python, or like */
	struct answer_via via;
};

void (*inspect_test_helper)(int chan);

/* ---- the opener -------------------------------------------------------------------------- */

/*
 * Sends a request. Returns the number of bytes received after the error code, or a negative errno.
 * *ret_fd is -1 if there was no descriptor.
 */
static ssize_t ask(const struct inspector *in, const struct opener_msg *m, void *bytes, size_t n,
		   int *ret_fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	int32_t err = 0;
	struct iovec out = {(void *)(uintptr_t)m, sizeof(*m)};
	struct iovec back[2] = {{&err, sizeof(err)}, {bytes, n}};
	struct msghdr request = {.msg_iov = &out, .msg_iovlen = 1};
	struct msghdr reply = {.msg_iov = back,
			       .msg_iovlen = n ? 2 : 1,
			       .msg_control = control,
			       .msg_controllen = sizeof(control)};
	const struct cmsghdr *c;
	ssize_t got;

	*ret_fd = -1;
	if (sendmsg(in->ask, &request, MSG_NOSIGNAL) < 0)
		return -errno;
	got = recvmsg(in->ask, &reply, MSG_CMSG_CLOEXEC);
	if (got < (ssize_t)sizeof(err))
		return got < 0 ? -errno : -ESRCH;
	c = CMSG_FIRSTHDR(&reply);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return err ? err : got - (ssize_t)sizeof(err);
}

static int ask_part(const struct inspector *in, unsigned int part, uint64_t start, uint64_t end)
{
	const struct opener_msg m = {.part = part, .start = start, .end = end};
	int fd;
	ssize_t n = ask(in, &m, NULL, 0, &fd);

	if (n < 0)
		return (int)n;
	return fd < 0 ? -EPROTO : fd;
}

static void open_kept(struct inspector *in)
{
	for (unsigned int i = 0; i < TARGET_PARTS; i++)
		in->kept[i] = KEPT & 1u << i ? ask_part(in, i, 0, 0) : -1;
}

/* Rewinds a kept descriptor: reading a maps file from its start returns the current mappings. */
static int open_part(void *ctx, enum target_part part, uint64_t start, uint64_t end)
{
	const struct inspector *in = ctx;
	int fd;

	if (!(KEPT & 1u << part))
		return ask_part(in, part, start, end);
	if (in->kept[part] < 0)
		return in->kept[part];
	fd = dup(in->kept[part]);
	if (fd >= 0)
		(void)lseek(fd, 0, SEEK_SET);
	return fd < 0 ? -errno : fd;
}

/*
 * If the daemon may read the target's memory but not open its files, reads go through the opener,
 * which uses process_vm_readv().
 */
static const struct inspector *self;

static int read_asked(const struct memory *mem, uint64_t addr, void *out, size_t n)
{
	(void)mem;
	while (n) {
		size_t part = n < OPENER_READ_MAX ? n : OPENER_READ_MAX;
		const struct opener_msg m = {
			.part = OPENER_READ, .n = (uint32_t)part, .start = addr};
		int fd;
		ssize_t got = ask(self, &m, out, part, &fd);

		if (got != (ssize_t)part)
			return got < 0 ? (int)got : -EFAULT;
		addr += part;
		out = (char *)out + part;
		n -= part;
	}
	return 0;
}

static void open_memory(struct inspector *in)
{
	if (in->kept[TARGET_MEM] >= 0) {
		in->access.memory = memory_fd(in->kept[TARGET_MEM]);
		return;
	}
	self = in;
	in->access.memory = (struct memory){.read = read_asked};
}

/* ---- finding ----------------------------------------------------------------------------- */

static int discover_file(struct inspector *in, struct diag *diag)
{
	int fd = ask_part(in, OPENER_FILE, 0, 0);
	int r;

	if (fd < 0)
		return diag_errno(diag, -fd, "cannot open '%s'", in->job->path);
	r = python_open_fd(fd, in->job->path, &in->found.python, diag);
	(void)close(fd);
	return r;
}

/* Parses the path through which the interpreter was opened, to send it as numbers. */
static int take_via(struct inspector *in, struct diag *diag)
{
	const char *p = strrchr(in->found.python->via, '/');
	char *end;

	in->via.exe = p && strcmp(p, "/exe") == 0;
	if (in->via.exe || !p)
		return 0;
	in->via.start = strtoull(p + 1, &end, 16);
	in->via.end = *end == '-' ? strtoull(end + 1, NULL, 16) : 0;
	return in->via.end ? 0
			   : diag_errno(diag, EINVAL,
					"cannot parse the path of the interpreter's file");
}

static int discover(struct inspector *in, struct diag *diag)
{
	struct inspect_result *f = &in->found;
	struct target *t = &in->target;
	int r;

	open_kept(in);
	open_memory(in);
	if (target_read_cmdline(t) == 0)
		memcpy(f->cmdline, t->cmdline, sizeof(f->cmdline));
	f->exec_id = target_exec_id(t);
	f->same = in->like && f->exec_id && f->exec_id == in->job->like_exec_id;
	if (f->same)
		return 0;
	r = python_discover(t, &f->python, diag);
	if (r == 0)
		r = take_via(in, diag);
	if (r == 0 && in->job->check)
		r = python_check(f->python, &in->access.memory, t->pid, diag);
	if (r == 0 && in->job->details)
		python_find_asyncio(t, f->python);
	return r;
}

/* Only called while the daemon's probes are detached. */
static void find_breaks(struct inspector *in)
{
	struct inspect_result *f = &in->found;
	const struct python *py = f->python;
	const struct memory *mem = &in->access.memory;
	const struct image_segment *segments;
	unsigned int n = in->job->breaks ? image_segments(py->image, &segments) : 0;

	f->site_breaks = breaks_at_sites(mem, &f->plan, py->bias);
	for (unsigned int i = 0; i < n; i++) {
		uint32_t have = f->nbreaks < INSPECT_BREAKS ? f->nbreaks : INSPECT_BREAKS;
		const uint8_t *file;
		size_t size;

		if (!segments[i].exec)
			continue;
		size = image_view_max(py->image, segments[i].vaddr, &file);
		f->nbreaks += (uint32_t)breaks_in_text(mem, file, size,
						       py->bias + segments[i].vaddr,
						       f->breaks + have, INSPECT_BREAKS - have);
	}
}

static int find(struct inspector *in, struct diag *diag)
{
	struct inspect_result *f = &in->found;
	int r = in->job->has_target ? discover(in, diag) : discover_file(in, diag);

	if (r < 0)
		return r;
	in->python = f->same ? in->like : f->python;
	if (f->python && in->job->plan)
		f->plan_err =
			plan_build(f->python->image, &f->python->layout, &f->plan, &f->plan_diag);
	if (f->python && in->job->plan)
		(void)own_code_find(f->python->image, &f->python->layout, &f->plan,
				    f->python->own_code);
	if (f->python)
		gil_find(f->python->image, &f->python->layout, &f->python->gil);
	if (in->job->has_target && f->python && in->job->plan && !f->plan_err)
		find_breaks(in);
	if (in->job->has_target)
		python_hidden(in->python, &in->access.memory, &in->target, &f->misses, f->warning,
			      sizeof(f->warning));
	return 0;
}

/* ---- answering --------------------------------------------------------------------------- */

static bool send_answer(int chan, const struct question_msg *q, int err, const char *content,
			size_t size)
{
	const struct answer_head h = {
		.seq = q->seq,
		.question = q->question,
		.err = err,
		.size = (uint32_t)size,
	};

	return channel_write(chan, &h, sizeof(h)) && channel_write(chan, content, size);
}

static bool send_found(struct inspector *in)
{
	const struct question_msg q = {.question = QUESTION_FIND};
	struct diag diag = {0};
	_cleanup_free_ char *out = NULL;
	size_t size = 0;
	int r = find(in, &diag);

	out = answer_encode_find(&in->found, &in->via, r, &diag, &size);
	if (!out || !send_answer(in->chan, &q, r, out, size) || r < 0)
		return false;
	if (in->found.python) {
		in->found.python->evaluator = python_evaluator(in->found.python);
		image_free(in->found.python->image);
		in->found.python->image = NULL;
	}
	return in->job->has_target;
}

static int answer_stacks(const struct inspector *in, bool dump, char **ret, size_t *ret_size)
{
	const struct memory *mem = &in->access.memory;
	struct python_stack *v = NULL;
	size_t n = 0;
	int r = dump ? python_dump(in->python, mem, PYTHON_TIDS_INNER, &v, &n, NULL)
		     : python_stacks(in->python, mem, PYTHON_TIDS_INNER, &v, &n, NULL);

	if (r < 0)
		return r;
	*ret = answer_encode_stacks(v, n, ret_size);
	python_stacks_free(v, n);
	return *ret ? 0 : -ENOMEM;
}

static int answer_code(const struct inspector *in, uint64_t code, char **ret, size_t *ret_size)
{
	struct code_names c;
	int r = python_code_read(&in->python->layout, &in->access.memory, code, &c);

	if (r < 0)
		return r;
	*ret = answer_encode_code(&c, ret_size);
	code_names_deinit(&c);
	return *ret ? 0 : -ENOMEM;
}

static int answer_lines(const struct inspector *in, uint64_t code, char **ret, size_t *ret_size)
{
	_cleanup_(code_lines_deinit) struct code_lines c = {0};
	_cleanup_(lines_deinit) struct lines ls = {0};
	int r = lines_read(&in->python->layout, &in->access.memory, code, &ls);

	if (r == 0)
		r = lines_expand(&ls, &c);
	if (r < 0)
		return r;
	*ret = answer_encode_lines(&c, ret_size);
	return *ret ? 0 : -ENOMEM;
}

static int answer_hidden(const struct inspector *in, char **ret, size_t *ret_size)
{
	char text[256];
	bool misses = false;

	python_hidden(in->python, &in->access.memory, &in->target, &misses, text, sizeof(text));
	*ret = answer_encode_hidden(misses, text, ret_size);
	return *ret ? 0 : -ENOMEM;
}

static int answer_exec_id(const struct inspector *in, char **ret, size_t *ret_size)
{
	uint64_t id = target_exec_id(&in->target);

	*ret_size = sizeof(id);
	*ret = malloc(*ret_size);
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, &id, sizeof(id));
	return 0;
}

static int answer_gils(const struct inspector *in, char **ret, size_t *ret_size)
{
	struct pyp_gil_range v[PYP_GIL_RANGES];

	*ret_size = gils_read(in->python, &in->access.memory, v) * sizeof(*v);
	*ret = malloc(*ret_size + 1);
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, v, *ret_size);
	return 0;
}

static int answer_census(const struct inspector *in, char **ret, size_t *ret_size)
{
	struct census c;
	int r = python_census(in->python, &in->access.memory, CENSUS_NS, &c, NULL);

	if (r < 0)
		return r;
	*ret = answer_encode_census(&c, ret_size);
	census_deinit(&c);
	return *ret ? 0 : -ENOMEM;
}

static int answer_names(const struct inspector *in, char **ret, size_t *ret_size)
{
	struct python_names n;
	int r = python_names(in->python, &in->access.memory, &n);

	if (r < 0)
		return r;
	*ret = answer_encode_names(&n, ret_size);
	python_names_deinit(&n);
	return *ret ? 0 : -ENOMEM;
}

static int answer_locals(const struct inspector *in, uint64_t frame, char **ret, size_t *ret_size)
{
	struct python_locals l;
	int r = python_locals(in->python, &in->access.memory, frame, &l);

	if (r < 0)
		return r;
	*ret = answer_encode_locals(&l, ret_size);
	python_locals_deinit(&l);
	return *ret ? 0 : -ENOMEM;
}

static int answer_tasks(const struct inspector *in, bool greenlets, char **ret, size_t *ret_size)
{
	struct python_tasks t;
	int r = (greenlets ? python_greenlets : python_tasks)(in->python, &in->access.memory, &t);

	if (r < 0)
		return r;
	*ret = answer_encode_tasks(&t, ret_size);
	python_tasks_deinit(&t);
	return *ret ? 0 : -ENOMEM;
}

static bool serve(struct inspector *in)
{
	_cleanup_free_ char *out = NULL;
	struct question_msg q;
	size_t size = 0;
	int r;

	if (!channel_read(in->chan, &q, sizeof(q)))
		return false;
	if (q.question == QUESTION_STACKS || q.question == QUESTION_DUMP)
		r = answer_stacks(in, q.question == QUESTION_DUMP, &out, &size);
	else if (q.question == QUESTION_CODE)
		r = answer_code(in, q.arg, &out, &size);
	else if (q.question == QUESTION_LINES)
		r = answer_lines(in, q.arg, &out, &size);
	else if (q.question == QUESTION_HIDDEN)
		r = answer_hidden(in, &out, &size);
	else if (q.question == QUESTION_GILS)
		r = answer_gils(in, &out, &size);
	else if (q.question == QUESTION_CENSUS)
		r = answer_census(in, &out, &size);
	else if (q.question == QUESTION_NAMES)
		r = answer_names(in, &out, &size);
	else if (q.question == QUESTION_LOCALS)
		r = answer_locals(in, q.arg, &out, &size);
	else if (q.question == QUESTION_TASKS || q.question == QUESTION_GREENLETS)
		r = answer_tasks(in, q.question == QUESTION_GREENLETS, &out, &size);
	else
		r = answer_exec_id(in, &out, &size);
	return send_answer(in->chan, &q, r < 0 ? r : 0, out, r < 0 ? 0 : size);
}

/* The layout is the version's table, which is elsewhere in this process, with what was refined. */
static bool take_like(struct inspect_job *job)
{
	struct python *py = &job->like;
	const struct layout *table = layout_find_abi(py->major, py->minor, py->layout.abi);

	py->image = NULL;
	if (!table)
		return false;
	py->layout = *table;
	return python_refined_set(&py->layout, job->refined) == 0;
}

void inspector_run(struct helper_side *side)
{
	static struct inspector in;
	struct inspect_job *job = side->ctx;

	in = (struct inspector){.job = job, .chan = side->chan, .ask = side->fds[INSPECT_ASK]};
	/* This process cannot start a thread, and the daemon waits with a deadline. */
	deadline_off();
	inspect_test_helper = (void (*)(int))helper_function_of(job->test_helper);
	if (confine_inspector(side->parent) < 0)
		_exit(1);
	if (inspect_test_helper)
		inspect_test_helper(side->chan);
	if (job->has_like && take_like(job))
		in.like = &job->like;
	in.access = (struct target_access){.open = open_part, .ctx = &in};
	if (job->has_target) {
		in.target = job->target;
		in.target.pidfd = side->fds[INSPECT_PIDFD];
		in.target.access = &in.access;
	}
	if (send_found(&in)) {
		/* All files are open, so the opener may end, unless it has to read memory. */
		if (in.kept[TARGET_MEM] >= 0)
			(void)close(in.ask);
		while (serve(&in))
			;
	}
}
