# Tests.  Every test program speaks TAP; scripts/run-tests runs them, keeps logs of what failed,
# and prints the last line `N passed, N failed`.

TEST_PACKAGES = cmocka
TEST_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(TEST_PACKAGES))
TEST_LIBS = $(shell $(PKG_CONFIG) --libs $(TEST_PACKAGES))

TESTLIB_SRC := $(sort $(wildcard tests/lib/*.c))
TESTLIB_OBJ := $(TESTLIB_SRC:%.c=$(BUILD)/obj/%.o)
TESTLIB = $(BUILD)/libtest.a
UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c tests/conformance/test_*.c))
FAULT_SRC := $(sort $(wildcard tests/fault/test_*.c))
UNIT := $(UNIT_SRC:%.c=$(BUILD)/%)
FAULT := $(FAULT_SRC:%.c=$(BUILD)/%)
# Small programs that process tests run as operations.
FAKE_SRC := $(sort $(wildcard tests/fakes/*.c))
FAKES := $(FAKE_SRC:%.c=$(BUILD)/%)
# Libraries put before the C library's, for failures that cannot be had otherwise.
PRELOAD_SRC := $(sort $(wildcard tests/preload/*.c))
PRELOADS := $(PRELOAD_SRC:%.c=$(BUILD)/%.so)
BENCH_SRC := $(sort $(wildcard tests/bench/*.c))
BENCH := $(BENCH_SRC:%.c=$(BUILD)/%)
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzz/%)
PROCESS := $(sort $(wildcard tests/process/*.sh))

$(TESTLIB): $(TESTLIB_OBJ)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

TEST_INC = -Itests/lib -I.
$(BUILD)/obj/tests/%.o: ALL_CPPFLAGS += $(TEST_INC) $(TEST_CFLAGS)

# The names of the checkpoint's steps, taken from the calls themselves, for the fault tests.
$(BUILD)/gen/ckpt_seams.inc: $(wildcard shared/checkpoint/*.c)
	@mkdir -p $(@D)
	grep -oh '"ckpt\.[a-z_.]*"' $^ | LC_ALL=C sort -u | sed 's/$$/,/' > $@
$(BUILD)/obj/tests/lib/ckpt_fixture.o: $(BUILD)/gen/ckpt_seams.inc
$(BUILD)/obj/tests/lib/ckpt_fixture.o: ALL_CPPFLAGS += -I$(BUILD)/gen

# Programs whose allocations fail on request (tests/lib/fault_alloc.h).
FAIL_ALLOC = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=strdup,--wrap=strndup
LINK_test_ckpt_memory = $(FAIL_ALLOC)
LINK_test_provider_memory = $(FAIL_ALLOC)
LINK_test_buf = $(FAIL_ALLOC)
LINK_test_fs = $(FAIL_ALLOC)
LINK_test_json_memory = $(FAIL_ALLOC)
LINK_test_flow_memory = $(FAIL_ALLOC)
LINK_test_pattern = $(FAIL_ALLOC)
LINK_test_flow_grow = $(FAIL_ALLOC)
LINK_test_ipc = $(FAIL_ALLOC)
LINK_test_proc = $(FAIL_ALLOC)
LINK_test_proc_walk = $(FAIL_ALLOC)

# A unit test links what it needs of every archive; LINK_test_name in this file adds linker words.
$(UNIT) $(FAULT) $(FAKES) $(BENCH): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(TESTLIB) $(LIBSUP) \
    $(LIBWRK) $(LIBFLOWSUP)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(LINK_$(@F)) -o $@ $< $(TESTLIB) $(LIBSUP) $(LIBWRK) $(LIBFLOWSUP) $(LIBS) \
	    $(TEST_LIBS) $(CFLAGS)

$(PRELOADS): $(BUILD)/%.so: %.c
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -std=c17 $(WARNINGS) -O2 -fPIC -shared -o $@ $< -ldl

# Fuzz targets are built by clang with everything instrumented, in a tree of their own.
FUZZ_CC ?= clang
.PHONY: fuzz-build
fuzz-build:
	$(MAKE) BUILD=$(BUILD)/fuzzing CC=$(FUZZ_CC) OPTIMISE='-O1 -g' HARDENING= \
	    SANITIZE='-fsanitize=fuzzer-no-link,address,undefined' fuzz-programs
.PHONY: fuzz-programs
fuzz-programs: $(FUZZ)
$(FUZZ): $(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(LIBFLOWSUP)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $< $(LIBFLOWSUP) $(LIBS)

.PHONY: tests check check-unit check-asan check-tsan campaign bench fuzz coverage lint
tests: programs $(UNIT) $(FAULT) $(FAKES) $(PRELOADS) $(BENCH)

check: tests
	scripts/run-tests --build $(BUILD)

check-unit: programs $(UNIT) $(FAKES)
	scripts/run-tests --build $(BUILD) --only unit $(UNIT_LIMIT)

# Everything but the groups that build trees of their own.
check-asan:
	$(MAKE) BUILD=$(BUILD)/asan SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all' \
	    OPTIMISE='-O1 -g' HARDENING= tests
	FLOWSUP_TEST_LIMIT=300 scripts/run-tests --build $(BUILD)/asan --limit 1800 \
	    --only unit --only conformance --only fault --only process

# What is built so is up to twenty times as slow.
check-tsan:
	FLOWSUP_TEST_LIMIT=900 $(MAKE) UNIT_LIMIT='--limit 3600' BUILD=$(BUILD)/tsan SANITIZE=-fsanitize=thread OPTIMISE='-O1 -g' HARDENING= check-unit

# The random campaigns in full: `make campaign ROUNDS=200`. Seeds are printed.
ROUNDS ?= 200
campaign: tests
	CAMPAIGN_ROUNDS=$(ROUNDS) scripts/run-tests --build $(BUILD) --only process --limit 86400 campaign

bench:
	scripts/install-packages build tour bench
	$(MAKE) programs $(BENCH)
	tests/bench/run $(BUILD)

SECONDS ?= 600
fuzz:
	@mkdir -p $(BUILD)
	FUZZ_SECONDS=$(SECONDS) FLOWSUP_BUILD=$(BUILD) bash tests/fuzz/smoke.sh

coverage:
	$(MAKE) BUILD=$(BUILD)/coverage SANITIZE=--coverage OPTIMISE='-O0 -g' HARDENING= tests
	scripts/run-tests --build $(BUILD)/coverage --only unit --only conformance --only fault --only process
	cd $(BUILD)/coverage && gcov -n -s $(CURDIR) $$(find obj/shared obj/supervisor obj/worker -name '*.gcda') | \
	    awk '/^File/ {f = $$2} /^Lines/ && f !~ /usr/ {print $$2, f}' | sort -u

lint: $(BUILD)/gen/schema.inc $(BUILD)/gen/schema-jobs.inc
	scripts/lint $(BUILD)

-include $(UNIT:$(BUILD)/%=$(BUILD)/obj/%.d) $(FAULT:$(BUILD)/%=$(BUILD)/obj/%.d) \
	$(FAKES:$(BUILD)/%=$(BUILD)/obj/%.d) $(BENCH:$(BUILD)/%=$(BUILD)/obj/%.d) $(TESTLIB_OBJ:.o=.d)

# Timed from its exec on: no library that it does not use is loaded.
LINK_stamp = -Wl,--as-needed
LINK_test_home = -Wl,--wrap=fs_kind
LINK_test_rundir = -Wl,--wrap=flock
