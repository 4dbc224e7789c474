# SPDX-License-Identifier: BSD-2-Clause
# Packages, included by the Makefile.

SUITES ?= bookworm trixie sid
DEB := $(abspath $(O))/deb

.PHONY: deb packages
deb: deps ## build the Debian package for this machine's release into $(O)/deb/
	$(call debian_install,$(DEPS_DEB))
	@$(SUB) $(PAGE)/page.stamp
	@packaging/deb.sh $(DEB) $(PAGE)

packages: deps ## build it for Debian 12, 13 and sid in root directories of these, and test it there (root)
	$(call debian_install,$(DEPS_DEB))
	@$(SUB) $(PAGE)/page.stamp
	@tests/packages.sh $(DEB) $(PAGE) $(SUITES)

# A tarball for other distributions. What Debian has as static libraries is linked statically. The
# rest (libcrypto, libsystemd, libmicrohttpd and libcurl, whose static versions need shared libraries
# all the same, and Zydis) lies beside the programs, which find it by DT_RPATH: DT_RUNPATH does not apply to the
# libraries that libraries need. -s: without debugging information, the build-id does not depend on
# directories.
VERSION := $(shell sed -n 's/^\#define PYPROF_VERSION "\(.*\)"$$/\1/p' include/pyprof/version.h)
DIST_NAME := pyprofd-$(VERSION)-linux-x86_64
DIST := $(O)/dist/$(DIST_NAME)
DIST_STATIC = $(filter -l%,$(shell $(PKG_CONFIG) --static --libs libbpf libelf jansson libpcre2-8 \
	libprotobuf-c zlib ncursesw))
DIST_SHARED = $(shell $(PKG_CONFIG) --libs libmicrohttpd libcurl libsystemd libcrypto) -lZydis -lZycore
DIST_LIBS = -Wl,-Bstatic $(filter-out -ldl -lpthread -lm -lzstd,$(DIST_STATIC)) -Wl,-Bdynamic $(DIST_SHARED) \
	$(filter -lzstd,$(DIST_STATIC)) -lm -pthread
DIST_LDFLAGS = $(ALL_LDFLAGS) -s -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/pyprofd'

$(O)/dist/pyprofd: $(call obj,daemon/main.c) $(O)/libpyprof.a
$(O)/dist/pyprofctl: $(call obj,cli/main.c) $(O)/libpyprofcli.a $(O)/libpyprof.a
$(O)/dist/pyprofd $(O)/dist/pyprofctl:
	@mkdir -p $(@D)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(DIST_LDFLAGS) -o $@ $^ $(DIST_LIBS)

.PHONY: dist dist-inner dist-check
dist: deps ## make a tarball for other distributions, $(O)/pyprofd-VERSION-linux-x86_64.tar.gz
	@$(SUB) dist-inner

dist-inner: $(O)/dist/pyprofd $(O)/dist/pyprofctl
	$(Q)rm -rf $(DIST)
	$(Q)$(MAKE) install-programs PREFIX= DESTDIR=$(DIST) SBINDIR=/bin >/dev/null
	$(Q)cp $^ $(DIST)/bin
	$(Q)packaging/dist.sh $(O)/dist $(DIST) $(O)/$(DIST_NAME).tar.gz
	@sha256sum $(O)/$(DIST_NAME).tar.gz

dist-check: deps ## build the tarball in two directories, compare, run it in a clean root directory (root)
	$(call debian_install,$(DEPS_DEB))
	@$(SUB) $(PAGE)/page.stamp
	@tests/dist.sh $(PAGE) trixie
