# The commands of a newcomer. Everything else is plain CMake: see CMakePresets.json.

JOBS ?= $(shell nproc 2>/dev/null || echo 2)

# CMAKE_GENERATOR counts only for a fresh build folder, so an existing one keeps its generator.
CONFIGURE = CMAKE_GENERATOR="$$(command -v ninja >/dev/null && echo Ninja || echo 'Unix Makefiles')" \
  cmake --preset
BUILD = cmake --build --parallel $(JOBS) --preset
TEST = ctest --parallel $(JOBS) --preset
# Kernels that randomise 32 bits of an address leave no room for the sanitizers' shadow memory.
test-asan test-tsan: TEST := $$(setarch -R true 2>/dev/null && echo setarch -R) $(TEST)

MIN_COVERAGE ?= 90

SOURCES = $(shell find src tests examples bench -name '*.cpp' -o -name '*.h' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: run test test-release test-asan test-tsan test-aarch64 coverage setup setup-tests format tidy clean help

# A small GPT learns from the documents and sources of this repository. What an earlier run left is
# replaced; `tessera train --resume --out build/run --steps N` would go on with it instead.
run: setup
	@$(CONFIGURE) release --log-level=WARNING
	@$(BUILD) release --target tessera_command
	@rm -rf build/run
	@find README.md docs src -name '*.md' -o -name '*.h' -o -name '*.cpp' | LC_ALL=C sort | \
	  xargs build/release/bin/tessera train --out build/run --tokenizer bpe --vocab 1024 --steps 500 \
	    --lr 3e-3 --eval-every 100

# Each stage runs even when one before it failed, so that one run shows everything; what failed is
# said again at the end, where it is looked for. PoCL compiles for all of them, one after another,
# what the first asks for; our own cache is one for each, so that each compiles through it.
test: SHELL := bash
test: .SHELLFLAGS := -o pipefail -c
test: setup-tests
	@mkdir -p build; failed=; export POCL_CACHE_DIR="$(CURDIR)/build/pocl"; \
	for stage in release asan tsan; do \
	  echo "=== make test: $$stage"; \
	  $(MAKE) --no-print-directory test-$$stage 2>&1 | tee build/test-$$stage.log || \
	    failed="$$failed $$stage"; \
	done; \
	for stage in $$failed; do \
	  echo "=== $$stage: what failed (build/test-$$stage.log has everything)"; \
	  grep -E 'FAILED|[Ee]rror[: ]|\*\*\*[^S]|\((Failed|Timeout)\)|Failure' build/test-$$stage.log | \
	    sed 's/\.\.\.\.*/.../' | head -40; \
	done; \
	if [ -n "$$failed" ]; then echo "=== make test: FAILED:$$failed"; exit 1; fi; \
	echo "=== make test: passed: release, asan (address + undefined), tsan (threads)"

test-release test-asan test-tsan: test-%: setup-tests
	@$(CONFIGURE) $* -DTESSERA_WERROR=ON --log-level=WARNING
	@$(BUILD) $*
	@$(TEST) $*

# A cross build, its tests under an emulator: takes several times as long as test-release.
test-aarch64:
	@tools/setup --aarch64
	@$(CONFIGURE) aarch64 -DTESSERA_WERROR=ON --log-level=WARNING
	@$(BUILD) aarch64
	@$(TEST) aarch64

# The counts of an earlier run would be added to. A failed test ends it only after the report.
coverage: setup-tests
	@$(CONFIGURE) coverage --log-level=WARNING
	@$(BUILD) coverage
	@find build/coverage -name '*.gcda' -delete
	@$(TEST) coverage; status=$$?; \
	tools/coverage --min $(MIN_COVERAGE) build/coverage && exit $$status

setup:
	@tools/setup

setup-tests:
	@tools/setup --tests

format:
	clang-format -i $(SOURCES)

tidy: setup
	@$(CONFIGURE) debug --log-level=WARNING
	clang-tidy -p build/debug --quiet $(filter %.cpp,$(filter src/%,$(SOURCES)))

clean:
	rm -rf build

help:
	@echo 'make run       train a small GPT on the sources of this repository and let it write'
	@echo 'make test      all tests: release, then under address + undefined, then thread sanitizer'
	@echo 'make test-release, test-asan, test-tsan   one of those stages'
	@echo 'make test-aarch64   a cross build for 64-bit ARM, its tests under qemu'
	@echo 'make coverage  which lines of src/ the tests execute; fails below MIN_COVERAGE=$(MIN_COVERAGE) %'
	@echo 'make setup     install what is missing (apt-get), nothing else'
	@echo 'make format    clang-format over the sources'
	@echo 'make tidy      clang-tidy over src/'
	@echo 'make clean     remove build/'
