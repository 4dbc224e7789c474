// SPDX-License-Identifier: BSD-2-Clause
/* Control-flow graph by recursive descent: see cfg.h. */
#include "plan/cfg.h"

#include <errno.h>
#include <string.h>

#include "elf/image.h"

static uint32_t hash_slot(const struct cfg *cfg, uint64_t vaddr)
{
	uint64_t h = vaddr * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 32) & (cfg->hash_size - 1);
}

uint32_t cfg_find(const struct cfg *cfg, uint64_t vaddr)
{
	if (!cfg->hash_size)
		return CFG_NONE;
	for (uint32_t s = hash_slot(cfg, vaddr); cfg->hash[s]; s = (s + 1) & (cfg->hash_size - 1))
		if (cfg->v[cfg->hash[s] - 1].in.vaddr == vaddr)
			return cfg->hash[s] - 1;
	return CFG_NONE;
}

static void hash_insert(struct cfg *cfg, uint32_t i)
{
	uint32_t s = hash_slot(cfg, cfg->v[i].in.vaddr);

	while (cfg->hash[s])
		s = (s + 1) & (cfg->hash_size - 1);
	cfg->hash[s] = i + 1;
}

static int cfg_grow(struct cfg *cfg)
{
	uint32_t cap = cfg->cap ? cfg->cap * 2 : 8192;
	struct cfg_node *v = realloc(cfg->v, cap * sizeof(*v));
	uint32_t *hash;

	if (!v)
		return -ENOMEM;
	cfg->v = v;
	hash = calloc(cap * 2, sizeof(*hash));
	if (!hash)
		return -ENOMEM;
	free(cfg->hash);
	cfg->hash = hash;
	cfg->hash_size = cap * 2;
	cfg->cap = cap;
	for (uint32_t i = 0; i < cfg->n; i++)
		hash_insert(cfg, i);
	return 0;
}

static const char *const noreturn_names[] = {
	"Py_FatalError",
	"_Py_FatalErrorFunc",
	"_Py_FatalErrorFormat",
	"_Py_FatalError_TstateNULL",
	"_Py_FatalRefcountErrorFunc",
	"abort",
	"exit",
	"_exit",
	"__stack_chk_fail",
	"__assert_fail",
};

static void noreturn_find(struct cfg *cfg)
{
	struct image_symbol sym;

	for (size_t i = 0; i < sizeof(noreturn_names) / sizeof(*noreturn_names); i++)
		if (image_symbol(cfg->img, noreturn_names[i], &sym) == 0 && sym.vaddr)
			cfg->noreturn[cfg->nnoreturn++] = sym.vaddr;
}

/* Code after such a call is not executed next. */
static bool is_noreturn(const struct cfg *cfg, const struct insn *in)
{
	const char *plt;

	if (in->flow != INSN_CALL)
		return false;
	for (unsigned int i = 0; i < cfg->nnoreturn; i++)
		if (cfg->noreturn[i] == in->target)
			return true;
	plt = image_plt_name(cfg->img, in->target);
	for (size_t i = 0; plt && i < sizeof(noreturn_names) / sizeof(*noreturn_names); i++)
		if (strcmp(plt, noreturn_names[i]) == 0)
			return true;
	return false;
}

/* A jump to the known start of another function leaves this one. */
static bool is_tail_jump(const struct cfg *cfg, const struct insn *in)
{
	return in->flow == INSN_JMP && image_plt_name(cfg->img, in->target);
}

static int cfg_add(struct cfg *cfg, const struct insn *in)
{
	int r;

	if (cfg->n >= CFG_MAX_INSNS)
		return -E2BIG;
	if (cfg->n == cfg->cap) {
		r = cfg_grow(cfg);
		if (r < 0)
			return r;
	}
	cfg->v[cfg->n] = (struct cfg_node){
		.in = *in,
		.next = CFG_NONE,
		.jump = CFG_NONE,
		.only_pred = CFG_NONE,
		.tail = is_tail_jump(cfg, in),
	};
	hash_insert(cfg, cfg->n++);
	return 0;
}

static bool code_at(const struct cfg *cfg, uint64_t vaddr, const uint8_t **code, size_t *max)
{
	const struct image_segment *seg;
	unsigned int n = image_segments(cfg->img, &seg);

	for (unsigned int i = 0; i < n; i++) {
		if (!seg[i].exec || vaddr < seg[i].vaddr || vaddr - seg[i].vaddr >= seg[i].filesz)
			continue;
		*max = image_view_max(cfg->img, vaddr, code);
		return *max > 0;
	}
	return false;
}

struct worklist {
	uint64_t *v;
	size_t n, cap;
};

static int work_push(struct worklist *w, uint64_t vaddr)
{
	if (w->n == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 1024;
		uint64_t *v = realloc(w->v, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		w->v = v;
		w->cap = cap;
	}
	w->v[w->n++] = vaddr;
	return 0;
}

/* Decode from vaddr until the path ends or reaches known code; branch targets go to the
 * worklist. */
static int explore_path(struct cfg *cfg, struct worklist *w, uint64_t vaddr)
{
	for (;;) {
		const uint8_t *code;
		struct insn in;
		size_t max;
		int r;

		if (cfg_find(cfg, vaddr) != CFG_NONE)
			return 0;
		if (!code_at(cfg, vaddr, &code, &max) || !cfg->arch->decode(code, max, vaddr, &in))
			return 0;
		if (is_noreturn(cfg, &in))
			in.flow = INSN_STOP;
		r = cfg_add(cfg, &in);
		if (r < 0)
			return r;
		if ((in.flow == INSN_JMP || in.flow == INSN_JCC) && !cfg->v[cfg->n - 1].tail) {
			r = work_push(w, in.target);
			if (r < 0)
				return r;
		}
		if (in.flow == INSN_JMP || in.flow == INSN_JMP_IND || in.flow == INSN_RET ||
		    in.flow == INSN_STOP)
			return 0;
		vaddr += in.len;
	}
}

int cfg_explore(struct cfg *cfg, const uint64_t *roots, size_t n)
{
	struct worklist w = {0};
	int r = 0;

	if (!cfg->nnoreturn)
		noreturn_find(cfg);
	for (size_t i = 0; i < n && r == 0; i++)
		r = work_push(&w, roots[i]);
	while (r == 0 && w.n)
		r = explore_path(cfg, &w, w.v[--w.n]);
	free(w.v);
	for (size_t i = 0; i < n && r == 0; i++) {
		uint32_t node = cfg_find(cfg, roots[i]);

		if (node != CFG_NONE)
			cfg->v[node].root = true;
	}
	return r;
}

static void add_pred(struct cfg *cfg, uint32_t to, uint32_t from)
{
	if (to == CFG_NONE)
		return;
	cfg->v[to].only_pred = cfg->v[to].preds++ ? CFG_NONE : from;
}

static int by_vaddr(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* An instruction may overlap several others, including instructions that begin long before it. */
static int mark_overlaps(struct cfg *cfg)
{
	_cleanup_free_ uint64_t *va = malloc((cfg->n ? cfg->n : 1) * sizeof(*va));
	uint64_t end = 0; /* highest end address of all instructions before */

	if (!va)
		return -ENOMEM;
	for (uint32_t i = 0; i < cfg->n; i++)
		va[i] = cfg->v[i].in.vaddr;
	qsort(va, cfg->n, sizeof(*va), by_vaddr);
	for (uint32_t i = 0; i < cfg->n; i++) {
		struct cfg_node *node = &cfg->v[cfg_find(cfg, va[i])];
		uint64_t own_end = node->in.vaddr + node->in.len;

		if (end > va[i] || (i + 1 < cfg->n && own_end > va[i + 1]))
			node->doubtful = true;
		end = own_end > end ? own_end : end;
	}
	return 0;
}

int cfg_link(struct cfg *cfg)
{
	for (uint32_t i = 0; i < cfg->n; i++) {
		struct cfg_node *node = &cfg->v[i];

		node->next = node->jump = node->only_pred = CFG_NONE;
		node->preds = 0;
	}
	for (uint32_t i = 0; i < cfg->n; i++) {
		struct cfg_node *node = &cfg->v[i];
		uint8_t flow = node->in.flow;

		if (flow == INSN_NEXT || flow == INSN_JCC || flow == INSN_CALL ||
		    flow == INSN_CALL_IND)
			node->next = cfg_find(cfg, node->in.vaddr + node->in.len);
		if ((flow == INSN_JMP || flow == INSN_JCC) && !node->tail)
			node->jump = cfg_find(cfg, node->in.target);
		add_pred(cfg, node->next, i);
		if (node->jump != node->next)
			add_pred(cfg, node->jump, i);
	}
	return mark_overlaps(cfg);
}

void cfg_deinit(struct cfg *cfg)
{
	free(cfg->v);
	free(cfg->hash);
	memset(cfg, 0, sizeof(*cfg));
}

bool cfg_full(const struct cfg *cfg, uint32_t i, struct insn_full *ret)
{
	const uint8_t *code;
	size_t max;

	return code_at(cfg, cfg->v[i].in.vaddr, &code, &max) &&
	       cfg->arch->decode_full(code, max, cfg->v[i].in.vaddr, ret);
}

void cfg_format(const struct cfg *cfg, uint32_t i, char *out, size_t size)
{
	const uint8_t *code;
	size_t max;

	out[0] = '\0';
	if (code_at(cfg, cfg->v[i].in.vaddr, &code, &max))
		cfg->arch->format(code, max, cfg->v[i].in.vaddr, out, size);
}

int cfg_reach(const struct cfg *cfg, uint32_t from, const uint8_t *blocked, uint8_t *seen)
{
	_cleanup_free_ uint32_t *stack = malloc((cfg->n ? cfg->n : 1) * sizeof(*stack));
	size_t n = 0;

	if (!stack)
		return -ENOMEM;
	if (from == CFG_NONE || seen[from] || (blocked && blocked[from]))
		return 0;
	seen[from] = 1;
	stack[n++] = from;
	while (n) {
		const struct cfg_node *node = &cfg->v[stack[--n]];
		const uint32_t succ[2] = {node->next, node->jump};

		for (int k = 0; k < 2; k++) {
			uint32_t s = succ[k];

			if (s == CFG_NONE || seen[s] || (blocked && blocked[s]))
				continue;
			seen[s] = 1;
			stack[n++] = s;
		}
	}
	return 0;
}
