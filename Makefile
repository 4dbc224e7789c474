# SPDX-License-Identifier: BSD-2-Clause
# pyprofd's one Makefile: `make help` lists targets and knobs.

# Knobs --------------------------------------------------------------------------------------
DEV ?=
SAN ?=
V ?=
comma := ,
SAN_DIR := $(subst $(comma),-,$(SAN))
O ?= $(if $(SAN),build/san-$(SAN_DIR),build)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 10
TEST_TIMEOUT ?= 900
SOAK_MINUTES ?= 30
HITS_SLOWER_NS ?=
MUTANTS ?= 100
MUTANTS_SEED ?= 1
MUTANTS_CAUGHT ?= 95
PREFIX ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
DATADIR ?= $(PREFIX)/share
BASHDIR ?= $(DATADIR)/bash-completion/completions
ZSHDIR ?= $(DATADIR)/zsh/site-functions
FISHDIR ?= $(DATADIR)/fish/vendor_completions.d
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
DOCDIR ?= $(DATADIR)/doc/pyprofd
CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
CLANG ?= clang
CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy
LLVM_STRIP ?= llvm-strip
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PKG_CONFIG ?= pkg-config
PROTOC_C ?= protoc-c
CFLAGS ?= -O2 -g

# What it takes, as Debian calls it ----------------------------------------------------------
DEPS := gcc libc6-dev make pkg-config clang llvm bpftool libbpf-dev libelf-dev libzydis-dev \
	libmicrohttpd-dev libcurl4-openssl-dev libssl-dev libjansson-dev libpcre2-dev libsystemd-dev \
	libprotobuf-c-dev protobuf-c-compiler zlib1g-dev libncurses-dev
# Node.js from elsewhere brings its own npm, which Debian's would not go with.
DEPS += $(if $(shell command -v npm),,nodejs npm)
DEPS_DEB := debhelper dpkg-dev lintian mmdebstrap python3-yaml
DEPS_DEV := libcriterion-dev clang-format clang-tidy libclang-rt-dev shellcheck mandoc valgrind \
	ccache curl gunicorn systemd python3 python3-aiohttp python3-django python3-flask \
	python3-gevent python3-greenlet python3-yappi golang-go openssl prometheus \
	chromium-headless-shell zsh fish \
	qemu-system-x86 busybox-static cpio clickhouse-server lld \
	$(DEPS_DEB)

# How we compile -----------------------------------------------------------------------------
PKGS := libbpf libelf libmicrohttpd libcurl jansson libpcre2-8 libsystemd libprotobuf-c zlib \
	ncursesw libcrypto
WARN := -Wall -Wextra -Wshadow -Wvla -Wformat=2 -Wmissing-prototypes -Wstrict-prototypes \
	-Wold-style-definition -Wpointer-arith -Wwrite-strings -Wundef -Wconversion \
	-Wno-missing-field-initializers
INC := -Iinclude -Idaemon -I$(O)/gen
DEFS := -D_GNU_SOURCE
# _FORTIFY_SOURCE needs optimization and conflicts with sanitizers. A level in CFLAGS takes precedence.
FORTIFY = $(if $(SAN)$(findstring _FORTIFY_SOURCE,$(CFLAGS)),,$(if $(filter-out -O0,$(filter \
	-O%,$(CFLAGS))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3))
HARDEN = -fstack-protector-strong -fstack-clash-protection -fcf-protection -fPIE $(FORTIFY)
ALL_CFLAGS = -std=gnu11 -fno-common $(HARDEN) $(WARN) $(if $(DEV),-Werror) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
	$(INC) $(DEFS) $(PKG_CFLAGS) $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now,--as-needed $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
# BTF has names of source files: relative ones, so that the programs do not depend on the directory.
BPF_CFLAGS = -target bpf -mcpu=v3 -O2 -g -fdebug-compilation-dir=. -std=gnu11 -Wall -Wextra -Wno-unused-parameter \
	$(if $(DEV),-Werror) -D__TARGET_ARCH_x86 -DPYP_BPF_SIDE -Iinclude -Ibpf \
	-idirafter /usr/include/$(shell uname -m)-linux-gnu \
	$(if $(HITS_SLOWER_NS),-DHITS_SLOWER_NS=$(HITS_SLOWER_NS))

# What `make check` runs, as groups for run.sh --sections. What follows a + only gets the processor time
# that the others leave idle, so that times can be measured beside it; it computes and measures nothing.
# check-unit goes first: it builds what the others need in $(O); flavours builds what check-damaged,
# check-san and fuzz-smoke need.
CHECK_GROUPS := check-unit \
	check-integration,check-e2e,check-attack,check-suites,check-browser+flavours,lint,check-damaged,check-san,fuzz-smoke
CHECKS := $(subst +, ,$(subst $(comma), ,$(CHECK_GROUPS)))
# Goals that install what they need, or need nothing; all others want the libraries to be there.
FREE_GOALS := help clean deps deps-dev format tidy-deep check check-shaken test test-% $(CHECKS) \
	bench bench-times bench-windows bench-forecast bench-service matrix hosts soak demo \
	fidelity pictures deb packages dist dist-check check-kernels mutants check-plans
ifneq ($(filter-out $(FREE_GOALS),$(or $(MAKECMDGOALS),all)),)
MISSING := $(foreach p,$(PKGS),$(if $(shell $(PKG_CONFIG) --exists $(p) && echo y),,$(p)))
ifneq ($(strip $(MISSING)),)
$(error missing libraries: $(strip $(MISSING)); `make deps` installs them on Debian)
endif
endif
# Asked for once, when first needed.
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(shell $(PKG_CONFIG) --cflags $(PKGS)))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $$(shell $(PKG_CONFIG) --libs $(PKGS)) -lZydis -lZycore -lm -pthread)$(PKG_LIBS)
CRITERION_LIBS := -lcriterion

ifeq ($(V),1)
Q :=
msg :=
else
Q := @
msg = @printf '  %-6s %s\n' '$(1)' '$(patsubst $(O)/%,%,$(2))';
MAKEFLAGS += --no-print-directory
endif

# What we compile ----------------------------------------------------------------------------
sources = $(shell find $(1) -name '$(2)' 2>/dev/null | LC_ALL=C sort)
LIB_SRC := $(filter-out daemon/main.c,$(call sources,daemon,*.c))
BASE_SRC := $(filter daemon/base/%,$(LIB_SRC))
CLI_SRC := $(call sources,cli,*.c)
CLI_LIB_SRC := $(filter-out cli/main.c,$(CLI_SRC))
HARNESS_SRC := $(call sources,tests/harness,*.c)
UNIT_SRC := $(call sources,tests/unit,test_*.c)
INTEGRATION_SRC := $(call sources,tests/integration,test_*.c)
E2E_SRC := $(call sources,tests/e2e,test_*.c)
ATTACK_SRC := $(call sources,tests/attack,test_*.c)
FUZZ_SRC := $(call sources,tests/fuzz,fuzz_*.c)
BENCH_SRC := $(call sources,tests/bench,bench_*.c)
BROWSER_SRC := $(call sources,tests/browser,gen_*.c)
TEST_SRC := $(UNIT_SRC) $(INTEGRATION_SRC) $(E2E_SRC) $(ATTACK_SRC) $(FUZZ_SRC) \
	$(BENCH_SRC) $(BROWSER_SRC) $(HARNESS_SRC) $(wildcard tests/fuzz/driver.c)
# The definitions of maps come before what uses them: see there.
BPF_SRC := bpf/maps.bpf.c $(filter-out bpf/maps.bpf.c,$(sort $(wildcard bpf/*.bpf.c)))
BPF_O := $(BPF_SRC:bpf/%.c=$(O)/bpf/%.o)
SKEL := $(O)/gen/pyprof.skel.h
PROTO_SRC := $(call sources,daemon,*.proto)
PROTO_C := $(PROTO_SRC:daemon/%.proto=$(O)/gen/%.pb-c.c)
PROTO_O := $(PROTO_SRC:daemon/%.proto=$(O)/obj/gen/%.pb-c.o)
HEADERS := $(call sources,bpf daemon cli include tests,*.h)
ALL_C := daemon/main.c $(LIB_SRC) $(CLI_SRC) $(TEST_SRC)

obj = $(patsubst %.c,$(O)/obj/%.o,$(1))
UNIT_BIN := $(UNIT_SRC:tests/%.c=$(O)/tests/%)
INTEGRATION_BIN := $(INTEGRATION_SRC:tests/%.c=$(O)/tests/%)
E2E_BIN := $(E2E_SRC:tests/%.c=$(O)/tests/%)
ATTACK_BIN := $(ATTACK_SRC:tests/%.c=$(O)/tests/%)
FUZZ_BIN := $(FUZZ_SRC:tests/%.c=$(O)/tests/%)
BENCH_BIN := $(BENCH_SRC:tests/%.c=$(O)/tests/%)
BROWSER_BIN := $(BROWSER_SRC:tests/%.c=$(O)/tests/%)

.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
.PHONY: all FORCE
all: $(O)/pyprofd $(O)/pyprofctl ## build pyprofd and pyprofctl (into $(O)/)

$(O)/.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' | cmp -s - $@ || \
		echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' > $@

$(O)/.flags-bpf: FORCE
	@mkdir -p $(@D)
	@echo '$(CLANG) $(BPF_CFLAGS)' | cmp -s - $@ || echo '$(CLANG) $(BPF_CFLAGS)' > $@

$(O)/obj/%.o: %.c $(O)/.flags
	@mkdir -p $(@D)
	$(call msg,CC,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# Both clocks' counters are stored one by one and read again at the next event: reading them as one
# vector stalls on the stores (measured: 25 instead of 14 ns per event).
$(O)/obj/daemon/stack/%.o $(O)/obj/daemon/profile/%.o: ALL_CFLAGS += -fno-tree-slp-vectorize

# No fuzzer plans: without their instrumentation, plans of damaged interpreters take less time.
$(O)/obj/daemon/plan/%.o: ALL_CFLAGS += $(if $(findstring fuzzer,$(SAN)),-fno-sanitize=fuzzer-no-link -O2)

# The skeleton must exist before its users are compiled, -MMD does the rest.
$(O)/obj/daemon/probe/arrivals.o $(O)/obj/daemon/probe/probe.o $(O)/obj/daemon/probe/probe_marks.o $(O)/obj/daemon/probe/probe_open.o $(O)/obj/daemon/probe/programs.o $(O)/obj/daemon/probe/ticker.o: | $(SKEL)

$(O)/bpf/%.bpf.o: bpf/%.bpf.c $(O)/.flags-bpf
	@mkdir -p $(@D)
	$(call msg,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@ 2>/dev/null || true

$(O)/bpf/pyprof.o: $(BPF_O)
	$(call msg,BPF,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(SKEL): $(O)/bpf/pyprof.o
	@mkdir -p $(@D)
	$(call msg,SKEL,$@)
	$(Q)echo '#pragma GCC system_header /* not our code: no warnings */' > $@
	$(Q)$(BPFTOOL) gen skeleton $< name pyprof_bpf >> $@

# Names of system calls, as initialisers by number. It has one user, too.
SYSCALLS := $(O)/gen/syscall_names.h
$(O)/obj/daemon/base/syscalls.o: | $(SYSCALLS)
$(SYSCALLS): $(O)/.flags
	@mkdir -p $(@D)
	$(call msg,GEN,$@)
	$(Q)echo '#include <asm/unistd.h>' | $(CC) -E -dM - | \
		sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9]*\)$$/[\2] = "\1",/p' | LC_ALL=C sort > $@.new
	$(Q)mv $@.new $@

# Likewise the messages of a .proto: format/x.proto is used by format/x.c. -w: not our code.
$(O)/obj/daemon/format/pprof.o $(O)/obj/daemon/server/exposition_proto.o \
	$(O)/obj/daemon/push/otlp.o $(O)/obj/tests/unit/server/test_exposition.o: | $(PROTO_C)

$(O)/gen/%.pb-c.c: daemon/%.proto
	@mkdir -p $(@D)
	$(call msg,PROTO,$@)
	$(Q)$(PROTOC_C) -Idaemon --c_out=$(O)/gen $<

$(O)/obj/gen/%.o: $(O)/gen/%.c $(O)/.flags
	@mkdir -p $(@D)
	$(call msg,CC,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -w -MMD -MP -c $< -o $@

# The pages of the HTML format, of slow calls and of `pyprofctl ui`: bundles of html/ with libraries from
# npm, at the versions and checksums of its package-lock.json. One for all flavours of a build. Without
# npm or a registry the programs come without them and report this when they are requested, and the next build
# tries again; where warnings are errors, so is that.
PAGE ?= $(abspath $(O))/page
export PAGE
PAGE_SRC := $(filter-out %/page.S,$(wildcard daemon/format/html/*))
NPM_CI := npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

$(PAGE)/page.stamp: $(PAGE_SRC) $(if $(wildcard $(PAGE)/page.missing),FORCE)
	@mkdir -p $(@D)
	$(call msg,PAGE,$(O)/page)
	$(Q)cp $(PAGE_SRC) $(@D)
	$(Q)cd $(@D) && rm -f page.missing && { $(NPM_CI) && node build.mjs; } >page.log 2>&1 || { \
		cat page.log; $(if $(DEV),exit 1;) : > licences.txt; : > page.missing; \
		for part in page.head page.tail slow.head slow.tail live.page live.policy; do : > $$part; done; \
		echo 'npm could not bundle the pages: building without the HTML format'; }
	@touch $@

PAGE_O := $(O)/obj/gen/page.o
$(PAGE_O): daemon/format/html/page.S $(PAGE)/page.stamp
	@mkdir -p $(@D)
	$(call msg,AS,$@)
	$(Q)$(CC) $(HARDEN) -c -Wa,-I,$(PAGE) $< -o $@

$(O)/libpyprof.a: $(call obj,$(LIB_SRC)) $(PROTO_O) $(PAGE_O)
	$(call msg,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/libpyprofbase.a: $(call obj,$(BASE_SRC))
	$(call msg,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/libpyprofcli.a: $(call obj,$(CLI_LIB_SRC))
	$(call msg,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/libharness.a: $(call obj,$(HARNESS_SRC))
	$(call msg,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/pyprofd: $(call obj,daemon/main.c) $(O)/libpyprof.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

$(O)/pyprofctl: $(call obj,cli/main.c) $(O)/libpyprofcli.a $(O)/libpyprof.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

# Tests --------------------------------------------------------------------------------------
# It links the test programs in half the CPU time that ld takes.
TEST_LD := $(if $(shell command -v ld.lld),-fuse-ld=lld)
TEST_LIBS := $(O)/libharness.a $(O)/libpyprofcli.a $(O)/libpyprof.a

# Where test programs look for libraries first: see tests/fakes/libgit2.c. Its name is the one that Criterion has.
FAKES := $(abspath $(O))/tests/lib
$(O)/tests/lib/fakes.stamp: tests/fakes/libgit2.c
	@mkdir -p $(@D)
	$(Q)so=$$(objdump -p "$$($(CC) -print-file-name=libcriterion.so)" | \
		sed -n 's/^ *NEEDED *\(libgit2\.so.*\)/\1/p'); \
		[ -z "$$so" ] || $(CC) -shared -fPIC -Wl,-soname,$$so -o $(@D)/$$so $<
	@touch $@

$(O)/tests/%: $(O)/obj/tests/%.o $(TEST_LIBS) | $(O)/tests/lib/fakes.stamp
	@mkdir -p $(@D)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(TEST_LD) -Wl,--disable-new-dtags,-rpath,$(FAKES) -o $@ $^ $(PKG_LIBS) \
		$(CRITERION_LIBS)

# A fuzzer: with libFuzzer when built for it, else with a main() that replays its corpus.
FUZZ_SAN := fuzzer-no-link,address,undefined
FUZZ_MAIN := $(if $(findstring fuzzer,$(SAN)),-fsanitize=fuzzer,$(call obj,tests/fuzz/driver.c))
$(O)/tests/fuzz/%: $(O)/obj/tests/fuzz/%.o $(filter %.o,$(FUZZ_MAIN)) $(TEST_LIBS)
	@mkdir -p $(@D)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(TEST_LD) $(filter -%,$(FUZZ_MAIN)) -o $@ $^ $(PKG_LIBS) $(CRITERION_LIBS)

# private: what these need (.flags, the skeleton) must not be built with them.
$(call obj,$(TEST_SRC)): private INC += -Itests -Icli -Ibpf

# Tests measure what they call, not themselves: compilers need a third of the time without optimisation, and
# without looking for undefined behaviour in the tests. What they call has both.
$(call obj,$(filter-out $(BENCH_SRC),$(TEST_SRC))): private ALL_CFLAGS += -O0 -g1 \
	$(if $(SAN),$(if $(findstring undefined,$(SAN)),-fno-sanitize=undefined) \
	$(if $(findstring fuzzer,$(SAN)),-fno-sanitize=fuzzer-no-link),-U_FORTIFY_SOURCE)

# What tests find in their environment; `export` so that run.sh and the tests see them.
export PYPROF_TOP := $(CURDIR)
export PYPROF_BUILD := $(abspath $(O))
export TEST_TIMEOUT
# One file collects the results of all sections of one `make check`.
RESULTS ?= $(abspath $(O))/check/results
export RESULTS
RUN := tests/run.sh
# One section is one `make run-SECTION`; run.sh --sections makes them and adds up. They fail only
# when something could not be built: what failed or was skipped is in RESULTS.
# Parallel, unless the user said how parallel.
SUB = $(MAKE) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS))

.PHONY: check check-shaken test run-check-smoke $(CHECKS) $(CHECKS:%=run-%) tests-build bench matrix soak \
	demo pictures
check: deps deps-dev ## everything below; ends with one line: N passed, N failed, N skipped
	+@SUBMAKE="$(SUB)" $(RUN) --sections $(CHECK_GROUPS)

test: deps deps-dev ## unit tests and a smoke test on /usr/bin/python3, < 3 minutes (root)
	+@SUBMAKE="$(SUB)" $(RUN) --sections check-unit check-smoke

check-shaken: deps deps-dev ## complete checks: three times alone, beside load, slower hits, one CPU, another order (root)
	+@tests/shaken.sh $(SHAKEN)

# One program, with what it needs: make test-integration/dump; test-dump: all programs of this name.
TEST_BIN := $(UNIT_BIN) $(INTEGRATION_BIN) $(E2E_BIN) $(ATTACK_BIN)
named_bin = $(filter $(O)/tests/$(dir $(1))test_$(notdir $(1)) \
	$(if $(findstring /,$(1)),,$(O)/tests/%/test_$(1)),$(TEST_BIN))
test-%: deps deps-dev
	@[ -n "$(call named_bin,$*)" ] || { echo "no test program is named '$*'" >&2; exit 2; }
	@$(SUB) DEV=1 all $(call named_bin,$*)
	@$(RUN) --jobs 1 $(firstword $(subst /, ,$*)) $(call named_bin,$*)

$(CHECKS): deps deps-dev
	+@SUBMAKE="$(SUB)" $(RUN) --sections $@

check-unit: ## unit tests, and the fuzzers' corpora replayed
check-san: ## unit tests under address and undefined-behaviour sanitizers, leaks included
check-damaged: ## plans of damaged interpreters, under the same sanitizers
check-integration: ## real probes on real interpreters (root)
check-suites: ## the same for the interpreters of other Debian releases, which are fetched
check-e2e: ## pyprofd and pyprofctl as processes, and the Debian package (root)
check-attack: ## hostile processes, users and loads (root): each point must hold
check-browser: ## the HTML report, the live page (root), and others' pages on our files, in a headless browser
fuzz-smoke: ## each fuzzer for FUZZ_SECONDS, with libFuzzer
lint: ## clang-format, clang-tidy, gcc's analyzer, layers, circles, forbidden calls, symbols, shellcheck, man pages

# Programs run beside each other, the longest first. Damaged interpreters only with sanitizers: check-damaged
# plans the same ones, with the same assertions.
UNIT_REST = $(filter-out $(DAMAGED_BIN),$(UNIT_BIN))
run-check-unit:
	@$(MAKE) DEV=1 all tests-build
	@$(RUN) --programs $(JOBS) --jobs 1 unit $(UNIT_REST)
	@$(RUN) --fuzz-replay replay $(FUZZ_BIN)

# Exact counts, and the programs from start to end, on this system's Python and on no other.
SMOKE_BIN := $(addprefix $(O)/tests/,integration/test_counts e2e/test_commands e2e/test_record)
run-check-smoke:
	@$(MAKE) DEV=1 all $(SMOKE_BIN)
	@PYPROF_INTERPRETERS=$(realpath /usr/bin/python3) $(RUN) --jobs 1 smoke $(SMOKE_BIN)

# One build with sanitizers, for the unit tests and for the fuzzers. DEV=: warnings are gcc's.
SAN_FLAVOUR := DEV= SAN=$(FUZZ_SAN) CC=$(CLANG) O=$(O)/san CFLAGS='-O1 -g1'
run-flavours:
	@$(MAKE) $(SAN_FLAVOUR) san-build

run-check-san:
	@$(MAKE) $(SAN_FLAVOUR) san-inner

.PHONY: san-build san-inner fuzz-inner damaged-inner
san-build: $(UNIT_BIN) $(FUZZ_BIN)
san-inner: san-build
	@$(RUN) --programs $(JOBS) --jobs 1 unit-san $(UNIT_REST)

# The kinds of this system's interpreters and of those of the suites that are there: what is missing,
# check-suites reports.
DAMAGED_BIN := $(O)/tests/unit/plan/test_damaged
PLANS_BIN = $(DAMAGED_BIN) $(call named,unit/plan,native gc)
SYSTEM_PYTHONS := $$HOME/.pyenv/versions/*/bin/python3.* /usr/bin/python3.*
run-check-damaged:
	@$(MAKE) $(SAN_FLAVOUR) $(O)/san/tests/unit/plan/test_damaged
	@{ echo $(SYSTEM_PYTHONS); tests/fetch-interpreters.sh; \
		JOBS=$(JOBS) tests/build-interpreters.sh 3.13-nogil; } > $(O)/suites.damaged 2>/dev/null; :
	@PYPROF_INTERPRETERS="$$(cat $(O)/suites.damaged)" $(MAKE) $(SAN_FLAVOUR) damaged-inner

damaged-inner:
	@TEST_TIMEOUT=2400 $(RUN) --jobs $(JOBS) unit-san $(DAMAGED_BIN)

# Programs run beside each other, those that take longest first; alone: what measures times, needs a CPU
# for itself or counts what other daemons have as well (control groups).
# They wait for a third of their time, so there is one more of them than CPUs; those that trace real interpreters,
# and programs from start to end, wait for half of it (for the kernel at each detach, and for samples), so there are
# two more. Where traps are slow (see run.sh), these use the CPUs nearly all the time; what runs beside gets the
# rest, until check-suites.
BESIDE := $(shell expr $(JOBS) + 1)
BESIDE_TRACED := $(JOBS)+2
BESIDE_SUITES := $(BESIDE)+1
named = $(foreach t,$(2),$(O)/tests/$(1)/test_$(t))
INTEGRATION_ALONE := $(call named,integration,memory times waits lines costs overhead windows parallel)
INTEGRATION_FIRST := $(call named,integration,lifecycle follow_modes counts modes shapes builtins \
	verify_builtins verify hidden dump follow)
INTEGRATION_PAIRED := $(INTEGRATION_FIRST) \
	$(filter-out $(INTEGRATION_FIRST) $(INTEGRATION_ALONE),$(INTEGRATION_BIN))
run-check-integration:
	@$(MAKE) DEV=1 all $(INTEGRATION_BIN)
	@$(RUN) --programs $(BESIDE_TRACED) --jobs 1 integration $(INTEGRATION_PAIRED)
	@PYPROFD_ATTACH=tracefs $(RUN) --programs $(BESIDE_TRACED) --jobs 1 tracefs $(TRACEFS_BIN)
	@$(RUN) --jobs 1 integration $(INTEGRATION_ALONE)

# Once more, by the mechanism of kernels that have no multi-uprobe links.
TRACEFS_BIN := $(call named,integration,attach_deep probe_life probe threads)

# A suite that cannot be fetched is a skipped test; what could be is tested all the same.
SUITES_PAIRED := $(call named,integration,counts builtins verify verify_builtins hidden dump \
	dump_details script objects) $(call named,unit/plan,plan native gc)
SUITES_ALONE := $(call named,integration,parallel)
run-check-suites:
	@$(MAKE) DEV=1 all $(SUITES_PAIRED) $(SUITES_ALONE)
	@$(RUN) --command suites/fetch sh -c 'tests/fetch-interpreters.sh > $(O)/suites'
	@TEST_TIMEOUT=1800 $(RUN) --command suites/build \
		sh -c 'JOBS=$(JOBS) tests/build-interpreters.sh 3.13-nogil >> $(O)/suites'
	@[ ! -s $(O)/suites ] || TEST_TIMEOUT=1800 PYPROF_INTERPRETERS="$$(cat $(O)/suites)" \
		$(RUN) --programs $(BESIDE_SUITES) --jobs 1 suites $(SUITES_PAIRED)
	@[ ! -s $(O)/suites ] || PYPROF_INTERPRETERS="$$(cat $(O)/suites)" \
		$(RUN) --jobs 1 suites $(SUITES_ALONE)
	@TEST_TIMEOUT=1200 $(RUN) --command kernels tests/kernels.py --short

E2E_ALONE := $(call named,e2e,durations forecast)
E2E_FIRST := $(call named,e2e,continuous fleet_hours fleet fleet_push http_listener slow trigger timeline http counters outputs record commands)
E2E_PAIRED := $(E2E_FIRST) $(filter-out $(E2E_FIRST) $(E2E_ALONE),$(E2E_BIN))
run-check-e2e:
	@$(MAKE) DEV=1 all $(E2E_BIN)
	@$(RUN) --programs $(BESIDE_TRACED) --jobs 1 e2e $(E2E_PAIRED)
	@$(RUN) --jobs 1 e2e $(E2E_ALONE)
	@SOAK_MINUTES=0.1 SOAK_STEPS=40 SOAK_SEED=35 $(RUN) --command soak tests/soak/soak.py
	@SOAK_MINUTES=0.15 SOAK_SPEED=8 SOAK_SEED=35 $(RUN) --command soak/machine tests/soak/machine.py
	@$(RUN) --command package tests/packages.sh quick $(PAGE)

ATTACK_ALONE := $(call named,attack,overload exec memory neighbour scratch_bounds depth)
ATTACK_FIRST := $(call named,attack,leaks clients threads inspect targets output)
ATTACK_PAIRED := $(ATTACK_FIRST) $(filter-out $(ATTACK_FIRST) $(ATTACK_ALONE),$(ATTACK_BIN))
run-check-attack:
	@$(MAKE) DEV=1 all $(ATTACK_BIN)
	@$(RUN) --programs $(BESIDE) --jobs 1 attack $(ATTACK_PAIRED)
	@$(RUN) --jobs 1 attack $(ATTACK_ALONE)

# Run from a copy, beside what npm installs there: nothing is written into the source tree.
BROWSER := $(abspath $(O))/browser
run-check-browser:
	@$(MAKE) DEV=1 all $(BROWSER_BIN)
	@mkdir -p $(BROWSER)/reports
	@cp tests/browser/*.mjs tests/browser/*.json $(BROWSER)
	@cd $(BROWSER) && $(NPM_CI)
	@$(O)/tests/browser/gen_reports $(BROWSER)/reports
	@$(O)/tests/browser/gen_slow $(BROWSER)/reports
	@cd $(BROWSER) && PYPROF_REPORTS=$(BROWSER)/reports node with_browser.mjs $(CURDIR)/$(RUN) --programs $(BESIDE) --node browser \
		$(notdir $(wildcard tests/browser/test_*.mjs))

run-fuzz-smoke:
	@$(MAKE) $(SAN_FLAVOUR) fuzz-inner

fuzz-inner: $(FUZZ_BIN)
	@$(RUN) --programs $(JOBS) --fuzz $(FUZZ_SECONDS) fuzz $(FUZZ_BIN)

tests-build: $(UNIT_BIN) $(INTEGRATION_BIN) $(E2E_BIN) $(ATTACK_BIN) $(FUZZ_BIN)

# Lint ---------------------------------------------------------------------------------------
TIDY_C := $(filter-out tests/%,$(ALL_C))
TIDY := $(if $(TIDY_DEEP),tidy-deep,tidy)
TIDY_OK := $(TIDY_C:%.c=$(O)/$(TIDY)/%.ok)
FORMAT_FILES = $(sort $(ALL_C) $(HEADERS) $(BPF_SRC))
MAN := packaging/pyprofd.8 packaging/pyprofctl.1
SHELL_FILES = $(sort $(call sources,tests packaging,*.sh) $(wildcard .ci/run))

# The analyzer in clang-tidy takes nearly all of its time. In its shallow mode, which only follows calls of small
# functions, it takes a seventh; `make tidy-deep` has the other. There, max-nodes is the number of states
# after which it gives up a function: its default, 225000, takes four times as long and reaches the same basic
# blocks; 25000 does not.
TIDY_STATES := $(addprefix -Xclang ,-analyzer-config $(if $(TIDY_DEEP),max-nodes=50000,mode=shallow))

$(O)/$(TIDY)/%.ok: %.c $(HEADERS) .clang-tidy | $(SKEL) $(PROTO_C) $(SYSCALLS)
	@mkdir -p $(@D)
	$(call msg,TIDY,$*.c)
	$(Q)$(CLANG_TIDY) --quiet --warnings-as-errors='*' $< -- $(TIDY_STATES) -std=gnu11 $(INC) \
		$(DEFS) $(PKG_CFLAGS) 2>&1 | sed '/warnings\? generated\.$$/d' > $(@:.ok=.log); \
		if [ -s $(@:.ok=.log) ]; then cat $(@:.ok=.log); false; fi
	@touch $@

# gcc's analyzer, beside clang's, which clang-tidy runs. What is off, and why:
#   null-dereference, null-argument, possible-null-*   assumes that errno may be 0 after a failure, so
#                                that `return -errno` succeeds without its output; UBSan checks it
#   use-of-uninitialized-value   gcc 12 loses what is written through a pointer (open_memstream)
#   malloc-leak                  and what is stored in *ret or an array; LeakSanitizer finds leaks
ANALYZE := -fanalyzer -Werror $(addprefix -Wno-analyzer-,null-dereference null-argument \
	possible-null-dereference possible-null-argument use-of-uninitialized-value malloc-leak)
ANALYZE_OK := $(TIDY_C:%.c=$(O)/analyze/%.ok)

# gcc 12 takes an array whose reallocarray failed for freed.
$(O)/analyze/daemon/stack/threads.ok: private ANALYZE += -Wno-analyzer-use-after-free

$(O)/analyze/%.ok: %.c $(HEADERS) | $(SKEL) $(PROTO_C) $(SYSCALLS)
	@mkdir -p $(@D)
	$(call msg,CHECK,$*.c)
	$(Q)gcc -std=gnu11 -O1 $(ANALYZE) $(INC) $(DEFS) $(PKG_CFLAGS) -c -o $(@:.ok=.o) $<
	@touch $@

.PHONY: tidy tidy-deep analyze format
tidy: $(TIDY_OK)
tidy-deep: deps deps-dev ## clang's analyzer through all calls: defects whose cause is in another function
	@$(SUB) -k DEV=1 TIDY_DEEP=1 tidy
analyze: $(ANALYZE_OK)

run-lint:
	@$(MAKE) DEV=1 all $(O)/libharness.a
	@$(RUN) --command format $(CLANG_FORMAT) --dry-run -Werror $(FORMAT_FILES)
	+@TEST_TIMEOUT=3600 $(RUN) --command tidy $(MAKE) -k DEV=1 tidy
	+@TEST_TIMEOUT=3600 $(RUN) --command analyze $(MAKE) -k DEV=1 analyze
	@$(RUN) --command layers tests/check/layers.sh
	@$(RUN) --command circles tests/check/circles.sh
	@$(RUN) --command forbidden tests/check/forbidden.sh
	@$(RUN) --command durations tests/check/durations.sh
	@$(RUN) --command symbols tests/check/symbols.sh
	@$(RUN) --command stacks tests/check/stacks.py $(O)/bpf/pyprof.o
	@$(RUN) --command hardening tests/check/hardening.sh
	@$(RUN) --command retry tests/check/retry.sh
	@$(RUN) --command shellcheck shellcheck $(SHELL_FILES)
	@$(RUN) --command mandoc mandoc -T lint -W warning $(MAN)
	@$(RUN) --command help-vs-man tests/check/help-vs-man.sh
	@$(RUN) --command python tests/check/python.sh

format: ## rewrite the sources according to .clang-format
	$(Q)$(CLANG_FORMAT) -i $(FORMAT_FILES)

# Figures and a look at it -------------------------------------------------------------------
bench: deps deps-dev ## measure cost, loss, distortion; beside cProfile and yappi
	@$(SUB) all bench-build
	@tests/bench/run.sh

BENCH_TIMES_PYTHON ?= python3
BENCH_TIMES_SECONDS ?= 5
bench-times: deps deps-dev ## shares of time by mode, beside samples of undisturbed programs (root)
	@$(SUB) all
	@tests/bench/times.py $(O)/pyprofctl $(BENCH_TIMES_PYTHON) $(BENCH_TIMES_SECONDS)

BENCH_WINDOWS_RUNS ?= 20
BENCH_WINDOWS_SECONDS ?= 10
bench-windows: deps deps-dev ## counts under --max-overhead beside the true ones, and its bound (root)
	@$(SUB) all
	@tests/bench/windows.py $(O)/pyprofctl $(BENCH_TIMES_PYTHON) $(BENCH_WINDOWS_SECONDS) \
		$(BENCH_WINDOWS_RUNS)

bench-forecast: deps deps-dev ## what was forecast beside the slowdown then measured (root)
	@$(SUB) all
	@tests/bench/forecast.py $(O)/pyprofctl $(BENCH_TIMES_PYTHON) 1.5

# Slower hits are another build of the BPF programs, which must not be mistaken for the usual one.
BENCH_SERVICE ?=
SERVICE_O = $(O)$(if $(HITS_SLOWER_NS),/slower-$(HITS_SLOWER_NS))
bench-service: deps deps-dev ## services under load, by mode: throughput, p99, shares, counts (root)
	@$(SUB) O=$(SERVICE_O) all
	@tests/bench/service.py $(if $(HITS_SLOWER_NS),--hits-slower $(HITS_SLOWER_NS)) $(BENCH_SERVICE) \
		$(SERVICE_O)/pyprofctl

matrix: deps deps-dev ## the table of interpreters, as in packaging/doc/fidelity.md (root)
	@$(SUB) all
	@tests/fetch-interpreters.sh > /dev/null
	@tests/build-interpreters.sh 3.13-nogil > /dev/null
	@tests/matrix.py

.PHONY: check-kernels
check-kernels: deps deps-dev ## the programs on Debian's kernels, in QEMU; prints the table of packaging/doc/kernels.md (root)
	@$(SUB) all
	@packaging/deb.sh $(DEB) $(PAGE)
	@failed=; tests/kernels.py || failed=1; tests/kernels.py here || failed=1; \
	tests/kernels.py --table || failed=1; \
	tests/kernels/systemd.py $(DEB)/pyprofd_*_amd64.deb \
		$(shell sed -n 's/^VERSION_CODENAME=//p' /etc/os-release) || failed=1; \
	test -z "$$failed"

.PHONY: check-plans plans-inner
check-plans: deps deps-dev ## plans of all interpreters, damaged in four times as many ways as in check-damaged
	@$(MAKE) $(SAN_FLAVOUR) $(PLANS_BIN:$(O)/%=$(O)/san/%)
	@tests/fetch-interpreters.sh > $(O)/suites.plans
	@JOBS=$(JOBS) tests/build-interpreters.sh 3.13-nogil >> $(O)/suites.plans
	@PYPROF_TEST_EVERY=1 PYPROF_INTERPRETERS="$$(echo $(SYSTEM_PYTHONS) $$(cat $(O)/suites.plans))" \
		RESULTS=/dev/null TEST_TIMEOUT=7200 $(MAKE) $(SAN_FLAVOUR) plans-inner

plans-inner: $(PLANS_BIN)
	@$(RUN) --jobs $(JOBS) plans $(PLANS_BIN)

.PHONY: hosts
hosts: deps deps-dev ## counts in gdb, vim, uwsgi, mod_wsgi and PL/Python of Debian 12 and 13 (root)
	@$(SUB) all
	@tests/hosts.py

.PHONY: fidelity
fidelity: deps deps-dev ## each test program on each interpreter: functions whose counts differ (root)
	@$(SUB) all
	@tests/fidelity.py

.PHONY: mutants
mutants: deps deps-dev ## plant MUTANTS random errors in the pure stages: do the unit tests notice them?
	@tests/mutants.py --number $(MUTANTS) --seed $(MUTANTS_SEED) --caught $(MUTANTS_CAUGHT) \
		--jobs $(JOBS) $(abspath $(O))/mutants

.PHONY: bench-build
bench-build: $(BENCH_BIN)

soak: deps deps-dev ## all that a machine can do to a daemon, for SOAK_MINUTES; curves in $(O) (root)
	@$(SUB) all
	@SOAK_MINUTES=$(SOAK_MINUTES) tests/soak/machine.py $(O)/soak.csv $(O)/soak.svg
	@SOAK_MINUTES=$(SOAK_MINUTES) tests/soak/soak.py

pictures: deps deps-dev ## draw the README's pictures from a new run (root)
	$(call debian_install,tmux)
	@$(SUB) all
	@packaging/doc/pictures.sh

demo: deps ## profile a small web service for a few seconds (root)
	@$(SUB) all
	@tests/demo.sh

# Installing ---------------------------------------------------------------------------------
INSTALL ?= install
DOCS := $(sort $(wildcard packaging/doc/*.md)) packaging/doc/soak.svg .github/SECURITY.md
.PHONY: install install-programs install-units uninstall deps deps-dev clean help
install: install-programs install-units ## into DESTDIR and PREFIX: programs, man pages, completions, systemd units

install-programs: all
	$(INSTALL) -d $(DESTDIR)$(SBINDIR) $(DESTDIR)$(BINDIR) $(DESTDIR)$(MANDIR)/man8 \
		$(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(BASHDIR) \
		$(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR) $(DESTDIR)$(DOCDIR)
	$(INSTALL) -m 755 $(O)/pyprofd $(DESTDIR)$(SBINDIR)/pyprofd
	$(INSTALL) -m 755 $(O)/pyprofctl $(DESTDIR)$(BINDIR)/pyprofctl
	$(INSTALL) -m 644 packaging/pyprofd.8 $(DESTDIR)$(MANDIR)/man8/pyprofd.8
	$(INSTALL) -m 644 packaging/pyprofctl.1 $(DESTDIR)$(MANDIR)/man1/pyprofctl.1
	for shell in bash zsh fish; do $(O)/pyprofctl completion $$shell > $(O)/completion.$$shell || \
		exit 1; done
	$(INSTALL) -m 644 $(O)/completion.bash $(DESTDIR)$(BASHDIR)/pyprofctl
	$(INSTALL) -m 644 $(O)/completion.zsh $(DESTDIR)$(ZSHDIR)/_pyprofctl
	$(INSTALL) -m 644 $(O)/completion.fish $(DESTDIR)$(FISHDIR)/pyprofctl.fish
	$(INSTALL) -m 644 $(PAGE)/licences.txt $(DESTDIR)$(DOCDIR)/html-report-licences.txt
	$(INSTALL) -m 644 $(DOCS) $(DESTDIR)$(DOCDIR)

# systemd-sysusers and systemd-tmpfiles make the group and the directory at the next boot, or by hand.
install-units:
	$(INSTALL) -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(SYSUSERSDIR) $(DESTDIR)$(TMPFILESDIR)
	sed 's|/usr/local/sbin|$(SBINDIR)|' packaging/pyprofd.service > $(O)/pyprofd.service
	$(INSTALL) -m 644 $(O)/pyprofd.service $(DESTDIR)$(UNITDIR)/pyprofd.service
	$(INSTALL) -m 644 packaging/pyprofd.socket $(DESTDIR)$(UNITDIR)/pyprofd.socket
	$(INSTALL) -m 644 packaging/pyprofd.sysusers $(DESTDIR)$(SYSUSERSDIR)/pyprofd.conf
	$(INSTALL) -m 644 packaging/pyprofd.tmpfiles $(DESTDIR)$(TMPFILESDIR)/pyprofd.conf

uninstall: ## remove what install put there
	rm -f $(DESTDIR)$(SBINDIR)/pyprofd $(DESTDIR)$(BINDIR)/pyprofctl \
		$(DESTDIR)$(MANDIR)/man8/pyprofd.8 $(DESTDIR)$(MANDIR)/man1/pyprofctl.1 \
		$(DESTDIR)$(BASHDIR)/pyprofctl $(DESTDIR)$(ZSHDIR)/_pyprofctl \
		$(DESTDIR)$(FISHDIR)/pyprofctl.fish $(DESTDIR)$(UNITDIR)/pyprofd.service \
		$(DESTDIR)$(UNITDIR)/pyprofd.socket $(DESTDIR)$(SYSUSERSDIR)/pyprofd.conf \
		$(DESTDIR)$(TMPFILESDIR)/pyprofd.conf \
		$(DESTDIR)$(DOCDIR)/html-report-licences.txt \
		$(addprefix $(DESTDIR)$(DOCDIR)/,$(notdir $(DOCS)))

include packaging/packages.mk

# $(1): packages. Asks dpkg first, so that nothing needs the network once all is there.
APT := DEBIAN_FRONTEND=noninteractive $(if $(filter 0,$(shell id -u)),,sudo) apt-get
define debian_install
	@command -v dpkg-query >/dev/null || { \
		echo 'not a Debian: the equivalents of these packages are needed: $(1)'; exit 0; }; \
	missing=; for p in $(1); do \
		dpkg-query -W -f '$${db:Status-Status}' $$p 2>/dev/null | grep -qx installed || \
			missing="$$missing $$p"; done; \
	[ -z "$$missing" ] && exit 0; echo "installing$$missing"; \
	$(APT) install -y -q --no-install-recommends $$missing || { $(APT) update -q && \
		$(APT) install -y -q --no-install-recommends $$missing; }
endef

deps: ## install what it takes to build (Debian packages)
	$(call debian_install,$(DEPS))

deps-dev: deps ## install what it takes to test (Debian packages)
	$(call debian_install,$(DEPS_DEV))

clean: ## remove $(O)/
	rm -rf $(O)

help: ## this
	@echo 'Targets:'
	@sed -n 's/^\([a-z][a-z0-9-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile packaging/packages.mk | \
		sed 's|$$(O)|$(O)|' | while IFS="$$(printf '\t')" read -r t h; do \
		printf '  %-18s %s\n' "$$t" "$$h"; done
	@printf '  %-18s %s\n' test-NAME 'one test program: test-dump, test-integration/dump (root)'
	@echo 'Knobs (VAR=value on the command line):'
	@printf '  %-18s %s\n' 'O=DIR' 'where everything is built (now: $(O))' \
		'DEV=1' 'warnings are errors' 'SAN=LIST' 'sanitizers, e.g. address,undefined' \
		'V=1' 'show commands' 'CC CFLAGS LDFLAGS' "as usual" \
		'CLANG BPFTOOL' 'for the BPF side' \
		'PREFIX DESTDIR' 'for install (PREFIX: $(PREFIX))' \
		'JOBS=N' 'how parallel the check targets build (now: $(JOBS))' \
		'SHAKEN=LIST' 'which of alone beside slower one order `make check-shaken` runs' \
		'HITS_SLOWER_NS=N' 'for tests: each hit of a probe takes this much longer' \
		'BENCH_SERVICE=LIST' 'options of tests/bench/service.py; its --help lists them' \
		'SOAK_MINUTES=N' 'how long each part of `make soak` takes (now: $(SOAK_MINUTES))' \
		'FUZZ_SECONDS=N' 'for each fuzzer (now: $(FUZZ_SECONDS))' \
		'MUTANTS=N' 'how many `make mutants` plants (now: $(MUTANTS)); MUTANTS_SEED: which' \
		'MUTANTS_CAUGHT=N' 'percent of them that must be caught (now: $(MUTANTS_CAUGHT))' \
		'TEST_TIMEOUT=N' 'seconds for one test binary (now: $(TEST_TIMEOUT))'

-include $(shell find $(O)/obj $(O)/bpf -name '*.d' 2>/dev/null)
