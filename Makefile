# Linnet's one build file. `make help` lists what it can do.
#
# Sources are found by wildcard. A file's suffix names its level and so its flags: gemm_avx2.c, gemm_neon.c.

BOARD ?=
BUILD ?= build$(if $(BOARD),/$(BOARD))
V ?=
Q := $(if $(V),,@)

ifneq ($(BOARD),)
include boards/$(BOARD).mk
endif

CC ?= gcc
AR := $(CROSS)ar
STRIP := $(CROSS)strip
ifneq ($(CROSS),)
CC := $(CROSS)gcc
endif
PKG_CONFIG ?= pkg-config

# A device build has neither converter nor protobuf.
CONVERTER ?= $(if $(BOARD),,1)
AUDIO ?= $(if $(BOARD),,1)

WARN := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-sign-conversion $(if $(SAN),,-Werror)
OPT ?= -O2 -g
CPPFLAGS += -I. -Ibase -D_GNU_SOURCE
CFLAGS += -std=c11 $(OPT) $(WARN) $(ARCH) -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno \
          -ffunction-sections -fdata-sections -pthread $(SAN)
LDFLAGS += -pthread -Wl,--gc-sections $(SAN) $(ARCH)
LDLIBS += -lm

TARGET := $(shell $(CC) $(ARCH) -dumpmachine)
ARCH_LEVELS := $(if $(findstring x86_64,$(TARGET)),avx2,$(if $(findstring aarch64,$(TARGET)),neon,$(if $(ARMV7),neon)))
ALL_LEVELS := avx2 neon
CFLAGS_avx2 := -mavx2 -mfma -mf16c
CFLAGS_neon := $(if $(ARMV7),-mfpu=neon-vfpv4)

# C files of a folder, without those of other architectures' levels.
sources = $(filter-out $(foreach l,$(filter-out $(ARCH_LEVELS),$(ALL_LEVELS)),%_$(l).c),$(wildcard $(addsuffix /*.c,$(1))))
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

LIB_OBJ := $(call objects,$(call sources,base formats ops runtime))
CONVERT_OBJ := $(if $(CONVERTER),$(call objects,$(call sources,convert convert/passes)) $(patsubst %.proto,$(BUILD)/obj/%.pb-c.o,$(wildcard convert/onnx.proto)))
# Device builds leave out the converter's verb and read .wav without libsndfile.
CLI_SKIP := $(if $(CONVERTER),,cli/convert.c) $(if $(AUDIO),cli/audio_wav.c,cli/audio_sndfile.c)
CLI_OBJ := $(call objects,$(filter-out $(CLI_SKIP),$(call sources,cli ops/check)))

ifneq ($(CONVERTER),)
CPPFLAGS += -DLNT_CONVERTER -I$(BUILD)/gen
CONVERT_LIBS := -lprotobuf-c
endif
ifneq ($(AUDIO),)
CPPFLAGS += -DLNT_AUDIO
AUDIO_LIBS := -lsndfile -lsamplerate
endif

.PHONY: all objects unit help check test test-long demo deps clean install
.DEFAULT_GOAL := all

all: $(BUILD)/linnet $(BUILD)/liblinnet.so $(BUILD)/liblinnet.a  ## library and program

objects: $(LIB_OBJ) $(CONVERT_OBJ) $(CLI_OBJ)

$(BUILD)/liblinnet.a: $(LIB_OBJ)
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/liblinnet.so: $(LIB_OBJ)
	@echo "  LINK    $@"
	$(Q)$(CC) -shared -Wl,-soname,liblinnet.so.0 -Wl,-z,max-page-size=16384 $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/linnet: $(CLI_OBJ) $(CONVERT_OBJ) $(LIB_OBJ)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(CONVERT_LIBS) $(AUDIO_LIBS) $(LDLIBS)

# Unit tests: every tests/c/test_*.c is a program of its own.
TEST_BIN := $(patsubst tests/c/%.c,$(BUILD)/tests/%,$(wildcard tests/c/test_*.c))

$(BUILD)/libconvert.a: $(CONVERT_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

.SECONDARY: $(call objects,$(wildcard tests/c/*.c))
$(BUILD)/tests/test_%: $(BUILD)/obj/tests/c/test_%.o $(BUILD)/libconvert.a $(BUILD)/liblinnet.a
	@echo "  LINK    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(CONVERT_LIBS) -lcmocka $(LDLIBS)

unit: $(TEST_BIN)  ## build and run the unit tests (TEST_BIN=build/tests/test_x for one)
	$(Q)for t in $(TEST_BIN); do echo "== $$t"; $(RUN_ENV) $$t || exit 1; done

# Compiling: the level in the file's name adds its flags.
level_of = $(strip $(foreach l,$(ALL_LEVELS),$(if $(filter %_$(l).c,$(1)),$(l))))
$(BUILD)/obj/%.o: %.c Makefile
	@echo "  CC      $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(CFLAGS_$(call level_of,$<)) -MMD -MP -c -o $@ $<

$(BUILD)/gen/convert/onnx.pb-c.c: convert/onnx.proto
	@echo "  PROTOC  $<"
	@mkdir -p $(@D)
	$(Q)protoc-c --proto_path=. --c_out=$(BUILD)/gen $<

$(BUILD)/obj/convert/onnx.pb-c.o: $(BUILD)/gen/convert/onnx.pb-c.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out $(WARN),$(CFLAGS)) -MMD -MP -c -o $@ $<

$(CONVERT_OBJ) $(CLI_OBJ): | $(if $(CONVERTER),$(patsubst %.proto,$(BUILD)/gen/%.pb-c.c,$(wildcard convert/onnx.proto)))

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 16

clean:  ## remove the build folder
	rm -rf build

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
