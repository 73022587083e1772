# package.mk — installing, and packages of what is built; the Makefile includes it.

PREFIX ?= /usr/local
# Where libraries are below it; lib/TRIPLE in Debian's packages.
LIBDIR ?= lib
VERSION := $(shell sed -n 's/^\#define LNT_VERSION "\(.*\)"/\1/p' runtime/linnet.h)

.PHONY: $(BUILD)/linnet.pc # written anew each time: PREFIX may be another
$(BUILD)/linnet.pc:
	@mkdir -p $(@D)
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'Name: linnet' 'Description: neural networks on CPUs, from one file' \
	    'Version: $(VERSION)' 'Cflags: -I$${prefix}/include' 'Libs: -L$${prefix}/$(LIBDIR) -llinnet' \
	    'Libs.private: -lm -pthread' > $@

# Manual pages and completion: the program prints them from its tables of options, a board's by its emulator.
# DOCS= leaves them out, where neither runs.
DOCS ?= 1
VERBS := $(patsubst $(BUILD)/obj/cli/verb_%.o,%,$(filter $(BUILD)/obj/cli/verb_%.o,$(CLI_OBJ)))
PAGES := linnet $(addprefix linnet-,$(VERBS))
.PHONY: docs
docs: $(BUILD)/linnet
	@mkdir -p $(BUILD)/docs
	$(Q)for page in $(PAGES); do \
	    $(EMULATOR) $(BUILD)/linnet --man $$(echo $$page | sed 's/^linnet-*//') > $(BUILD)/docs/$$page.1 && \
	    gzip -9nf $(BUILD)/docs/$$page.1 || { echo "no manual pages: the program does not run here; make DOCS= $(MAKECMDGOALS)"; exit 1; }; \
	done
	$(Q)for shell in bash zsh fish; do $(EMULATOR) $(BUILD)/linnet --completion $$shell > $(BUILD)/docs/$$shell || exit 1; done

# Debian's zsh looks for those of packages in vendor-completions.
ZSH_DIR ?= share/zsh/site-functions
BELOW = $(DESTDIR)$(PREFIX)
INSTALL_FILE := install -m 644
.PHONY: install-docs dist
install-docs: docs
	$(Q)install -d $(addprefix $(BELOW)/,share/man/man1 share/bash-completion/completions share/fish/vendor_completions.d $(ZSH_DIR))
	$(Q)$(INSTALL_FILE) $(PAGES:%=$(BUILD)/docs/%.1.gz) $(BELOW)/share/man/man1
	$(Q)$(INSTALL_FILE) $(BUILD)/docs/bash $(BELOW)/share/bash-completion/completions/linnet
	$(Q)$(INSTALL_FILE) $(BUILD)/docs/zsh $(BELOW)/$(ZSH_DIR)/_linnet
	$(Q)$(INSTALL_FILE) $(BUILD)/docs/fish $(BELOW)/share/fish/vendor_completions.d/linnet.fish

# The loader finds libraries by its cache, which root renews.
TELL_LOADER = PATH=$$PATH:/usr/sbin:/sbin; [ $$(id -u) != 0 ] || ldconfig; \
    ldconfig -p 2>/dev/null | grep -q '=> $(PREFIX)/$(LIBDIR)/$(SONAME)$$' || \
    echo "The loader does not know $(PREFIX)/$(LIBDIR)/$(SONAME) yet: ldconfig as root, or LD_LIBRARY_PATH=$(PREFIX)/$(LIBDIR)"

install: all $(BUILD)/linnet.pc $(if $(DOCS),install-docs)  ## program, libraries, headers, pages, completion below DESTDIR and PREFIX
	$(Q)install -d $(addprefix $(BELOW)/,bin include $(LIBDIR)/pkgconfig $(LIBDIR)/cmake/Linnet)
	$(Q)install -s --strip-program=$(STRIP) -m 755 $(BUILD)/linnet $(BELOW)/bin
	$(Q)$(INSTALL_FILE) runtime/linnet.h base/linnet_types.h $(if $(VOICES),speech/linnet_voice.h) $(BELOW)/include
	$(Q)for a in liblinnet $(if $(VOICES),liblinnet-speech); do \
	    $(STRIP) --strip-debug -o $(BELOW)/$(LIBDIR)/$$a.a $(BUILD)/$$a.a && chmod 644 $(BELOW)/$(LIBDIR)/$$a.a || exit 1; done
	$(Q)$(if $(VOICES),install -d $(BELOW)/share/linnet/voices && $(INSTALL_FILE) $(wildcard speech/voices/*.lnt) speech/voices/NOTICE $(BELOW)/share/linnet/voices)
	$(Q)$(INSTALL_FILE) $(BUILD)/linnet.pc $(BELOW)/$(LIBDIR)/pkgconfig
	$(Q)$(INSTALL_FILE) package/LinnetConfig.cmake $(BELOW)/$(LIBDIR)/cmake/Linnet
	$(Q)sed 's/@VERSION@/$(VERSION)/' package/LinnetConfigVersion.cmake > $(BELOW)/$(LIBDIR)/cmake/Linnet/LinnetConfigVersion.cmake
ifeq ($(STATIC),)
	$(Q)install -s --strip-program=$(STRIP) -m 755 $(BUILD)/liblinnet.so $(BELOW)/$(LIBDIR)/liblinnet.so.$(VERSION)
	$(Q)ln -sf liblinnet.so.$(VERSION) $(BELOW)/$(LIBDIR)/$(SONAME)
	$(Q)ln -sf $(SONAME) $(BELOW)/$(LIBDIR)/liblinnet.so
	$(Q)$(if $(DESTDIR)$(CROSS),,$(TELL_LOADER))
endif

dist:  ## the last commit as build/linnet-VERSION.tar.gz
	@mkdir -p build
	$(Q)git archive --prefix=linnet-$(VERSION)/ -o build/linnet-$(VERSION).tar.gz HEAD
	@echo build/linnet-$(VERSION).tar.gz

# Debian packages: linnet, and without STATIC=1 liblinnet0 and liblinnet-dev. What they depend on besides libc.
DEB_ARCH ?= $(shell dpkg --print-architecture)
DEB_VERSION := $(VERSION)-1
DEB_LIBS := $(if $(CONVERTER),libprotobuf-c1) $(if $(SNDFILE),libsndfile1 libsamplerate0) $(if $(BLAS),libopenblas0)
MAINTAINER ?= Linnet authors <linnet@packages.invalid>
TRIPLE_OF = $(shell $(CC) $(ARCH) -print-multiarch)
comma := ,
empty :=
in_a_row = $(subst $(empty) $(empty),$(comma) ,$(strip $(1)))
# The time of all files in a package: the last commit's, or that of the tarball.
EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md))
deb: all  ## Debian packages for this machine, or with BOARD=NAME for the board: apt-get install ./FILE.deb
	$(Q)rm -rf $(BUILD)/deb $(BUILD)/*.deb && mkdir -p $(BUILD)/deb
	$(Q)$(MAKE) --no-print-directory install DESTDIR=$(BUILD)/deb/all PREFIX=/usr LIBDIR=lib/$(TRIPLE_OF) BUILD=$(BUILD) \
	    ZSH_DIR=share/zsh/vendor-completions
	$(Q)CROSS=$(CROSS) MAINTAINER="$(MAINTAINER)" SOURCE_DATE_EPOCH=$(EPOCH) sh package/deb.sh $(BUILD)/deb $(BUILD) $(DEB_VERSION) \
	    $(DEB_ARCH) $(TRIPLE_OF) "$(call in_a_row,$(DEB_LIBS))"

# Wheels: compiled as everything here, linked by zig, which has the symbols of a libc that old, with protobuf-c inside.
WHEEL_GLIBC := 2.28
WHEEL_TOOLS := .deps/wheel/bin/python
WHEELS := x86_64 aarch64 armv7l armv6l
WHEEL_TARGET_x86_64 := x86_64-linux-gnu
WHEEL_TARGET_aarch64 := aarch64-linux-gnu
WHEEL_TARGET_armv7l := arm-linux-gnueabihf
WHEEL_TARGET_armv6l := arm-linux-gnueabihf
# zig's own ARMv7 has NEON, which is a level here, taken where the CPU has it.
WHEEL_ZIG_armv7l := -mcpu=generic+v7a+vfp3d16-neon-d32
WHEEL_ZIG_armv6l := -mcpu=arm1176jzf_s
WHEEL_TAG = $(if $(filter arm%,$(1)),linux,manylinux_$(subst .,_,$(WHEEL_GLIBC)))_$(1)
WHEEL_MAKE_x86_64 := BOARD=
WHEEL_MAKE_aarch64 := BOARD=generic-arm64
WHEEL_MAKE_armv7l := BOARD=generic-armhf
# What Debian's compiler for ARMv7 calls hard floats is right for a Pi Zero's system, the instructions are not.
WHEEL_MAKE_armv6l := BOARD=generic-armhf ARMV7= COSTS=boards/costs/rpi-zero ARCH="-marm -march=armv6kz -mfpu=vfp -mfloat-abi=hard"

wheel: $(addprefix wheel-,$(WHEELS))  ## Python packages for x86-64 and ARM in build/wheels: pip install FILE.whl
.PHONY: wheel deps-wheel $(addprefix wheel-,$(WHEELS))
$(addprefix wheel-,$(WHEELS)): wheel-%: deps-wheel
	$(Q)$(MAKE) --no-print-directory $(WHEEL_MAKE_$*) BUILD=build/wheel/$* STATIC= AUDIO= BLAS= CONVERTER=1 PLATFORM=$(call WHEEL_TAG,$*) \
	    LINK="$(WHEEL_TOOLS) -m ziglang cc -target $(WHEEL_TARGET_$*).$(WHEEL_GLIBC) $(WHEEL_ZIG_$*)" LDFLAGS=-Wl,--gc-sections \
	    LDLIBS="-lm -ldl -lpthread" CONVERT_LIBS=build/wheel/$*/protobuf-c.o one-wheel

# In that make: BUILD, CC and ARCH are the target's.
.PHONY: one-wheel
one-wheel: $(BUILD)/protobuf-c.o
	$(Q)$(MAKE) --no-print-directory $(BUILD)/linnet $(BUILD)/liblinnet_python.so
	$(Q)rm -rf $(BUILD)/package && mkdir -p $(BUILD)/package build/wheels && rm -f build/wheels/*$(PLATFORM).whl
	$(Q)for f in linnet liblinnet_python.so; do $(STRIP) -o $(BUILD)/package/$$f $(BUILD)/$$f || exit 1; done
	$(Q)cd python && LINNET_BUILD=$(abspath $(BUILD)/package) LINNET_PLATFORM=$(PLATFORM) SOURCE_DATE_EPOCH=$(EPOCH) \
	    $(abspath .)/$(WHEEL_TOOLS) -W ignore setup.py -q egg_info --egg-base $(abspath $(BUILD)/package) \
	    build --build-base $(abspath $(BUILD)/package/build) bdist_wheel --dist-dir $(abspath build/wheels)
	@ls build/wheels/*$(PLATFORM).whl

PROTOBUF_C := .deps/protobuf-c/protobuf-c/protobuf-c.c
$(BUILD)/protobuf-c.o: $(PROTOBUF_C)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ARCH) -O2 -fPIC -fvisibility=hidden -I.deps/protobuf-c -c -o $@ $<

deps-wheel: deps .deps/wheel/ready $(PROTOBUF_C)  ## install what wheels need: cross compilers, zig, protobuf-c's source
	$(Q)for b in generic-arm64 generic-armhf; do $(MAKE) --no-print-directory BOARD=$$b AUDIO= deps || exit 1; done

.deps/wheel/ready: python/wheel-requirements.txt
	$(Q)rm -rf $(@D) && python3 -m venv $(@D)
	$(Q)$(WHEEL_TOOLS) -m pip install -q --disable-pip-version-check -r $<
	@touch $@

# Debian's source package, from this machine's own package sources.
$(PROTOBUF_C):
	$(Q)rm -rf $(@D)/.. && mkdir -p .deps/protobuf-c/apt/lists/partial
	$(Q)cd .deps/protobuf-c/apt && \
	    sed -n 's/^deb /deb-src /p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list > all.list 2>/dev/null; \
	    for f in /etc/apt/sources.list.d/*.sources; do [ ! -e $$f ] || { sed 's/^Types:.*/Types: deb-src/' $$f; echo; } >> all.sources; done; \
	    from="-q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$$PWD -o Dir::State::lists=$$PWD/lists"; \
	    apt-get $$from update && apt-get $$from source --download-only protobuf-c
	$(Q)tar -xzf .deps/protobuf-c/apt/protobuf-c_*.orig.tar.gz -C .deps/protobuf-c --strip-components=1 && rm -r .deps/protobuf-c/apt
	@touch $@
