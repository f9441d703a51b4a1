# Every target works from a fresh clone with nothing but Go and make. "make
# demo" and "make test" first see to the few other programs (scripts/need.sh).

# Releases state it: make build VERSION=1.2.3
VERSION ?= 0.1.0-dev

# Where "make install" puts the program and its man pages: PREFIX/bin and
# PREFIX/share/man/man1.
ifeq ($(shell id -u),0)
PREFIX ?= /usr/local
else
PREFIX ?= $(HOME)/.local
endif

# A clone that another user owns must build too, and the bytes of a build must
# not depend on the state of the clone.
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)

.DEFAULT_GOAL := help
.PHONY: help need need-test build install demo test test-long bench lint fuzz oracle judge-corpus

help:
	@echo "make demo       build, then watch a confined bot mend a failing test, and survive a kill -9 (no key needed)"
	@echo "make build      bin/agent and bin/sonny, static"
	@echo "make install    build, then put agent and sonny into $(PREFIX)/bin, the man pages beside them (PREFIX=... changes it)"
	@echo "make test       formatting, vet for Linux and macOS, and every test; minutes"
	@echo "make test-long  the same with the race detector and the long tests; needs a C compiler"
	@echo "make oracle     what is said to model providers, read by their own libraries; fetches those once"
	@echo "make fuzz       every fuzz target, 20,000 executions each (FUZZTIME=... changes it)"
	@echo "make bench      the workloads, measured from outside and compared with their targets"
	@echo "make judge-corpus JUDGE=PROVIDER/MODEL   a real model judges the approver's corpus, through the daemon that runs"
	@echo "make lint       gofumpt and staticcheck"

need:
	@scripts/need.sh

# The guides' programs in Python are run too.
need-test:
	@scripts/need.sh bubblewrap git ripgrep tmux python3

# -buildid= and -trimpath: the same source gives the same bytes in any folder.
build:
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -buildid= -X agent/internal/cli.Version=$(VERSION)' -o bin/agent ./cmd/agent
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -buildid= -X agent/internal/sonny/cli.Version=$(VERSION)' -o bin/sonny ./cmd/sonny

install: build
	@mkdir -p '$(DESTDIR)$(PREFIX)/bin'
	install -m 0755 bin/agent '$(DESTDIR)$(PREFIX)/bin/agent'
	install -m 0755 bin/sonny '$(DESTDIR)$(PREFIX)/bin/sonny'
	bin/agent reference man '$(DESTDIR)$(PREFIX)/share/man/man1'

demo: need
	@demo/demo.sh

test: need-test
	@scripts/test.sh -timeout=4m

test-long: need-test
	@RACE=1 scripts/test.sh -count=1 -timeout=60m -tags long
	@scripts/oracle.sh -count=1

oracle:
	@scripts/oracle.sh

judge-corpus:
	@JUDGE='$(JUDGE)' go test -count=1 -timeout=1h -tags judge -run '^TestJudgeCorpus$$' ./internal/approver

FUZZTIME ?= 20000x
fuzz:
	@scripts/fuzz.sh $(FUZZTIME)

bench:
	@mkdir -p bench/out
	go run ./bench -json bench/out/figures.json

lint:
	@scripts/lint.sh
