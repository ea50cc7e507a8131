# `make` prints what there is to make.

VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BIN        := bin
FUZZTIME   ?= 20s
BENCHTIME  ?= 1s
BENCHCOUNT ?= 6
MINUTES    ?= 1
SEED       ?= 0
RACE       ?=

GO            ?= go
GOLANGCI_LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFUMPT       := $(GO) run mvdan.cc/gofumpt@v0.12.0
BENCHSTAT     := $(GO) run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
SCRIPTS       := .ci/run test/setup.sh test/pmcd.sh test/fuzz.sh test/cpu.sh test/demo/run.sh \
                 configs/Install configs/Remove packaging/*.sh test/boot/*.sh

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c

.PHONY: help setup build demo test lint race fuzz torture bench packages install tree check clean

help: ## print this list
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

setup: ## install what the tests and the demo use, where it is missing
	@test/setup.sh

build: ## build the agent, a static binary: bin/pmdammv
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o $(BIN)/pmdammv ./cmd/pmdammv

demo: setup build ## show live metrics of two instrumented programs through a pmcd of its own
	@$(GO) -C test/demo/speed build -o $(CURDIR)/$(BIN)/bakery .
	@test/demo/run.sh $(BIN)/pmdammv $(BIN)/bakery

test: setup ## run all tests, those with a real pmcd and real writers too
	$(GO) test -timeout 30m ./...

lint: ## go.mod tidy, formatting, vet on four architectures, golangci-lint, and shellcheck where it is installed
	$(GO) mod tidy -diff
	$(GO) -C test/demo/speed mod tidy -diff
	$(GOFUMPT) -d .
	for arch in amd64 arm64 386 s390x; do GOARCH=$$arch CGO_ENABLED=0 $(GO) vet ./...; done
	$(GO) -C test/demo/speed vet .
	$(GOLANGCI_LINT) run
	! command -v shellcheck >/dev/null || shellcheck -x $(SCRIPTS)

race: setup ## run all tests with the race detector, in random order
	$(GO) test -timeout 30m -race -shuffle=on ./...

fuzz: ## run every fuzz target for FUZZTIME (20s)
	@test/fuzz.sh $(FUZZTIME)

torture: build setup ## MINUTES (1) of everything that may make the agent fail; RACE=1: with the race detector, SEED=n: again
	$(if $(RACE),CGO_ENABLED=1 $(GO) build -race -o $(BIN)/pmdammv-race ./cmd/pmdammv)
	$(GO) run ./test/torture -minutes $(MINUTES) -seed $(SEED) -agent $(BIN)/pmdammv$(if $(RACE),-race)

bench: setup build ## run the benchmarks into bin/bench.txt (OLD=FILE compares with an earlier one), then this agent beside PCP's on SETS (all)
	@mkdir -p $(BIN)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -count $(BENCHCOUNT) ./... | tee $(BIN)/bench.txt
	$(if $(OLD),$(BENCHSTAT) $(OLD) $(BIN)/bench.txt)
	$(GO) run ./test/sidebyside -agent $(BIN)/pmdammv $(SETS)

packages: ## build deb and rpm packages and archives, for amd64 and arm64, into bin/packages
	@packaging/build.sh $(BIN)/packages

install: build ## copy the agent, its scripts, units and manual pages to where PCP and systemd look (DESTDIR, PREFIX)
	@packaging/install.sh

tree: ## fail when a tracked file was changed or an untracked one left behind
	@changes=$$(git status --porcelain); echo "$$changes"; test -z "$$changes"

check: test lint race fuzz torture bench tree ## everything that CI runs

clean: ## remove what was built
	rm -rf $(BIN)
