# SPDX-License-Identifier: MIT
#
# plog, from the top. `make help` lists the targets. Each folder with something
# to build has a Makefile of its own; everything that is built goes to build/.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := all

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

all: module user ## the module for the stock kernel, daemon, CLI and libraries

packages: ## the Debian packages that building needs
	@tools/setup/packages @build

module: packages ## the module, for Debian's kernel: build/module/RELEASE/plog.ko
	@tools/kernel/module stock

engine: packages ## the engine in user space: build/lib/libplogengine.a
	@$(MAKE) -C tools/engine

user: packages engine ## plogd, plogctl, plogcat and the C library
	@$(MAKE) -C tools/libplog
	@$(MAKE) -C tools/plogctl
	@$(MAKE) -C tools/plogcat
	@$(MAKE) -C daemon

run: all ## a running broker at 127.0.0.1:9092 (FRESH=1: with an empty log, PORT=N)
	@tools/run/run

check: test-packages ## all tests; the last line counts them
	@$(MAKE) -j2 all
	@selftests/run check

check-debug: test-packages ## the kernel tests on a debug kernel (KASAN, lockdep, kmemleak)
	@$(MAKE) -j2 all
	@tools/kernel/kernel path debug modules >/dev/null
	@tools/kernel/module debug
	@selftests/run --jobs 1 check-debug

test-packages: packages
	@tools/setup/packages @test @vm @kernel @docs

install: all ## programs, library, headers, module source and configuration (DESTDIR=DIR)
	@tools/setup/install $(DESTDIR)

demo: all ## a real text through device, broker and clients, compared
	@tools/demo/demo

bench: all ## ratios and instruction counts, measured in the guest
	@tools/bench/bench
	@echo
	@tools/bench/flat

bench-flat: all ## what must not grow with the log or the number of partitions alone
	@tools/bench/flat

clean: ## what was built in this tree (kernels in the cache stay)
	rm -rf build

.PHONY: help all packages test-packages module engine user run check check-debug install demo bench bench-flat clean
