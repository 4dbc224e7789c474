# SPDX-License-Identifier: BSD-2-Clause
# pyprofd's one Makefile: `make help` lists targets and knobs.

# Knobs --------------------------------------------------------------------------------------
DEV ?=
SAN ?=
V ?=
comma := ,
SAN_DIR := $(subst $(comma),-,$(SAN))
O ?= $(if $(SAN),build/san-$(SAN_DIR),build)
PREFIX ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
UNITDIR ?= $(PREFIX)/lib/systemd/system
CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
CLANG ?= clang
LLVM_STRIP ?= llvm-strip
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PKG_CONFIG ?= pkg-config
CFLAGS ?= -O2 -g

# How we compile -----------------------------------------------------------------------------
PKGS := libbpf libelf libmicrohttpd libcurl jansson libpcre2-8 libsystemd
WARN := -Wall -Wextra -Wshadow -Wvla -Wformat=2 -Wmissing-prototypes -Wstrict-prototypes \
	-Wold-style-definition -Wpointer-arith -Wwrite-strings -Wundef -Wno-missing-field-initializers
INC := -Iinclude -Idaemon -I$(O)/gen
DEFS := -D_GNU_SOURCE
ALL_CFLAGS = -std=gnu11 -fno-common -fstack-protector-strong -fPIE $(WARN) $(if $(DEV),-Werror) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
	$(INC) $(DEFS) $(PKG_CFLAGS) $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
BPF_CFLAGS = -target bpf -mcpu=v3 -O2 -g -std=gnu11 -Wall -Wextra -Wno-unused-parameter \
	$(if $(DEV),-Werror) -D__TARGET_ARCH_x86 -DPYP_BPF_SIDE -Iinclude -Ibpf \
	-idirafter /usr/include/$(shell uname -m)-linux-gnu

ifeq ($(filter help clean deps deps-dev format,$(MAKECMDGOALS)),)
ifneq ($(MAKECMDGOALS),demo)
ifneq ($(MAKECMDGOALS),check)
ifneq ($(MAKECMDGOALS),bench)
MISSING := $(foreach p,$(PKGS),$(if $(shell $(PKG_CONFIG) --exists $(p) && echo y),,$(p)))
$(if $(strip $(MISSING)),$(error missing libraries: $(strip $(MISSING)); `make deps` installs them on Debian))
endif
endif
endif
endif
PKG_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
PKG_LIBS = $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null) -lZydis -lZycore
CRITERION_LIBS = -lcriterion

ifeq ($(V),1)
Q :=
msg :=
else
Q := @
msg = @printf '  %-6s %s\n' '$(1)' '$(patsubst $(O)/%,%,$(2))';
MAKEFLAGS += --no-print-directory
endif

# What we compile ----------------------------------------------------------------------------
LIB_SRC := $(filter-out daemon/main.c,$(shell find daemon -name '*.c' | LC_ALL=C sort))
BASE_SRC := $(filter daemon/base/%,$(LIB_SRC))
CLI_SRC := $(shell find cli -name '*.c' | LC_ALL=C sort)
CLI_LIB_SRC := $(filter-out cli/main.c,$(CLI_SRC))
HARNESS_SRC := $(shell find tests/harness -name '*.c' 2>/dev/null | LC_ALL=C sort)
UNIT_SRC := $(shell find tests/unit -name 'test_*.c' | LC_ALL=C sort)
INTEGRATION_SRC := $(shell find tests/integration -name 'test_*.c' | LC_ALL=C sort)
E2E_SRC := $(shell find tests/e2e -name 'test_*.c' | LC_ALL=C sort)
FUZZ_SRC := $(shell find tests/fuzz -name 'fuzz_*.c' | LC_ALL=C sort)
BPF_SRC := $(wildcard bpf/*.bpf.c)
SKEL := $(BPF_SRC:bpf/%.bpf.c=$(O)/gen/%.skel.h)

obj = $(patsubst %.c,$(O)/obj/%.o,$(1))
UNIT_BIN := $(UNIT_SRC:tests/%.c=$(O)/tests/%)
INTEGRATION_BIN := $(INTEGRATION_SRC:tests/%.c=$(O)/tests/%)
E2E_BIN := $(E2E_SRC:tests/%.c=$(O)/tests/%)
FUZZ_BIN := $(FUZZ_SRC:tests/%.c=$(O)/tests/%)

.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
.PHONY: all FORCE
all: $(O)/pyprofd $(O)/pyprofctl

-include mk/*.mk

$(O)/.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(CLANG) $(BPF_CFLAGS)' | cmp -s - $@ || \
		echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(CLANG) $(BPF_CFLAGS)' > $@

$(O)/obj/%.o: %.c $(O)/.flags
	@mkdir -p $(@D)
	$(call msg,CC,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# The skeleton has one user; it must exist before that is compiled, -MMD does the rest.
$(O)/obj/daemon/probe/probe.o: | $(SKEL)

$(O)/bpf/%.bpf.o: bpf/%.bpf.c $(O)/.flags
	@mkdir -p $(@D)
	$(call msg,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@ 2>/dev/null || true

$(O)/gen/%.skel.h: $(O)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $(notdir $*)_bpf > $@

$(O)/libpyprof.a: $(call obj,$(LIB_SRC))
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

$(O)/tests/%: $(O)/obj/tests/%.o $(O)/libharness.a $(O)/libpyprofcli.a $(O)/libpyprof.a
	@mkdir -p $(@D)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS) $(CRITERION_LIBS)
$(call obj,$(UNIT_SRC) $(INTEGRATION_SRC) $(E2E_SRC) $(HARNESS_SRC)): INC += -Itests -Icli

-include $(shell find $(O) -name '*.d' 2>/dev/null)
