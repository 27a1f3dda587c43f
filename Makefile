# What CI runs is what you run: make help lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# One version for the server, its API and the client libraries; a test holds them together.
VERSION := $(shell cat internal/core/release/VERSION)
REVISION := $(shell git describe --always --dirty --exclude "*" 2>/dev/null || echo devel)
SMALL := -trimpath -ldflags "-s -w"
GVISOR_LINK = -s -w -X gvisor.dev/gvisor/runsc/version.version=$(shell go list -C runsc -m -f '{{.Version}}' gvisor.dev/gvisor 2>/dev/null)
# What Atoll changes in gVisor: see runsc/patch.
CHANGED = -modfile ../bin/.gvisor.mod
GVISOR = -trimpath $(CHANGED) -ldflags "$(GVISOR_LINK)"
# Where the kernel's process begins: see runsc/sentry/entry.go.
SENTRY = -trimpath $(CHANGED) -ldflags "$(GVISOR_LINK) $(if $(filter amd64,$(shell go env GOARCH)),-E main.entry)"

# Tools that need the packages compiled use what 'make build' has compiled: with other
# flags, or with cgo, they compile everything once more.
LIKE_BUILD := CGO_ENABLED=0 GOFLAGS="$(strip $(shell go env GOFLAGS) -trimpath)"

# make run keeps its data beside the sources, so that it needs no rights elsewhere.
export ATOLL_DATA_DIR ?= $(CURDIR)/data

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{ printf "  make %-10s %s\n", $$1, $$2 }'

.PHONY: run
run: build ## build everything, start the server on 127.0.0.1:8080, run a program in it, stay up
	@scripts/run-deps.sh
	@exec bin/atoll demo --dev --on-exit=destroy examples/hello.py

.PHONY: build
build: ## build atoll, its guest and gVisor's runtime into bin/
	@mkdir -p bin/gvisor-bin
	@scripts/docs.sh --optional
	@test -x bin/atoll-runsc || echo "building gVisor's runtime; the first time takes a few minutes"
	CGO_ENABLED=0 go build $(SMALL) -o bin/atoll-guest ./cmd/atoll-guest
	CGO_ENABLED=0 go build $(SMALL) -o bin/atoll-guestd ./cmd/atoll-guestd
	CGO_ENABLED=0 go build $(SMALL) -o bin/atoll-redteam ./cmd/atoll-redteam
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.linked=$(REVISION)" -o bin/atoll ./cmd/atoll
	CGO_ENABLED=0 go run -C runsc -trimpath ./patch -o ../bin/.gvisor
	CGO_ENABLED=0 go build -C runsc $(GVISOR) -v -o ../bin/atoll-runsc .
	CGO_ENABLED=0 go build -C runsc $(SENTRY) -v -o ../bin/gvisor-bin/gvisor_sentry ./sentry

# Where make install puts things. DESTDIR goes before each of them.
PREFIX ?= /usr/local
DESTDIR ?=
SYSCONFDIR ?= /etc
BIN ?= bin
bindir = $(PREFIX)/bin
libexecdir = $(PREFIX)/libexec/atoll
datadir = $(PREFIX)/share/atoll
unitdir = $(PREFIX)/lib/systemd/system
docdir = $(PREFIX)/share/doc/atoll

.PHONY: install
install: ## install what make build built: PREFIX (/usr/local), DESTDIR, SYSCONFDIR (/etc)
	@test -x $(BIN)/atoll -a -x $(BIN)/gvisor-bin/gvisor_sentry || { echo "run 'make build' first"; exit 1; }
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(libexecdir)/gvisor-bin $(DESTDIR)$(datadir) $(DESTDIR)$(unitdir) $(DESTDIR)$(SYSCONFDIR)/atoll $(DESTDIR)$(docdir)
	install -m 755 $(BIN)/atoll $(DESTDIR)$(bindir)/atoll
	install -m 755 $(BIN)/atoll-guest $(BIN)/atoll-guestd $(BIN)/atoll-redteam $(BIN)/atoll-runsc $(DESTDIR)$(libexecdir)
	install -m 755 $(BIN)/gvisor-bin/gvisor_sentry $(DESTDIR)$(libexecdir)/gvisor-bin/gvisor_sentry
	sed 's|/usr/local/bin|$(bindir)|g' deploy/systemd/atoll.service >$(DESTDIR)$(unitdir)/atoll.service
	chmod 644 $(DESTDIR)$(unitdir)/atoll.service
	install -m 644 LICENSE $(DESTDIR)$(docdir)/copyright
	install -m 644 NOTICE $(DESTDIR)$(docdir)/NOTICE
	test -e $(DESTDIR)$(SYSCONFDIR)/atoll/atoll.yaml || install -m 640 packaging/atoll.yaml $(DESTDIR)$(SYSCONFDIR)/atoll/atoll.yaml

.PHONY: uninstall
uninstall: ## remove what make install installed, but not the configuration and the data
	rm -f $(DESTDIR)$(bindir)/atoll $(DESTDIR)$(unitdir)/atoll.service
	rm -rf $(DESTDIR)$(libexecdir) $(DESTDIR)$(datadir) $(DESTDIR)$(docdir)

.PHONY: package
package: build ## write a .deb, a tarball, the default image and an OCI image of the server to .cache/package
	@scripts/run-deps.sh --required
	$(BIN)/atoll image build --if-changed --data-dir .cache/package-data
	rm -rf .cache/package
	VERSION=$(VERSION) BIN=$(BIN) IMAGE_DATA=.cache/package-data packaging/package.sh .cache/package

.PHONY: packages
packages: ## write the client libraries' packages to .cache/packages
	rm -rf .cache/packages
	sdk/python/tools/env tools/package "$(CURDIR)/.cache/packages"
	sdk/typescript/scripts/install.sh && npm --prefix sdk/typescript run -s package "$(CURDIR)/.cache/packages"
	go run -C tools ./gomodule "$(CURDIR)/.cache/packages/go"

.PHONY: docs
docs: ## build the documentation site that the server embeds and serves at /help
	@scripts/docs.sh

.PHONY: release
release: package packages ## write everything of a release to .cache/release: packages, libraries, SBOM, provenance, checksums
	rm -rf .cache/release
	VERSION=$(VERSION) packaging/release.sh .cache/release

# Not checked in: each is made of the docstrings, which the checks of the libraries ask for.
.PHONY: reference
reference: ## write the API references of the client libraries to .cache/reference
	rm -rf .cache/reference
	mkdir -p .cache/reference/go
	sdk/python/tools/env tools/reference "$(CURDIR)/.cache/reference/python"
	sdk/typescript/scripts/install.sh && npm --prefix sdk/typescript run -s reference -- --out "$(CURDIR)/.cache/reference/typescript"
	go doc -C sdk/go -all >.cache/reference/go/atoll.txt

.PHONY: quick
quick: ## format, vet, build and run the tests that need no root, image or service
	@scripts/quick.sh

# With PKG, RUN is a regular expression of tests: make test PKG=./internal/core/run RUN=TestCost
PKG ?=
RUN ?= .
.PHONY: test
test: test-deps build ## install what the tests need, check everything, run all tests; PKG and RUN select some
	@$(if $(PKG),scripts/test-one.sh '$(PKG)' '$(RUN)',scripts/test.sh)

.PHONY: dev
dev: ## start a server with --dev, rebuild and restart it on every change
	@scripts/dev.sh

.PHONY: test-deps
test-deps:
	@scripts/test-deps.sh

bin/.gvisor.mod: # the copy of gVisor; make build looks whether it is right
	CGO_ENABLED=0 go run -C runsc -trimpath ./patch -o ../bin/.gvisor

.PHONY: check
check: check-files bin/.gvisor.mod ## vet, formatting, generated files
	go vet ./... && go vet -C runsc -modfile ../bin/.gvisor.mod ./... && go vet -C sdk/go ./...

# What make test checks before it begins; it vets with the linters' rules.
.PHONY: check-files
check-files:
	@unformatted="$$(gofmt -l $$(git ls-files '*.go'))"; test -z "$$unformatted" || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	@$(LIKE_BUILD) scripts/check-generated.sh

.PHONY: generate
generate: ## write the OpenAPI document and the configuration reference from the code
	go generate ./... && go generate -C sdk/go ./...
	sdk/python/tools/env python3 tools/generate.py
	sdk/typescript/scripts/install.sh && npm --prefix sdk/typescript run -s generate

.PHONY: lint
lint: ## run the linters of .golangci.yml
	@test -x .cache/golangci-lint || echo "building the linters; the first time takes a few minutes"
	go build -C tools -ldflags "-s -w" -o ../.cache/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	$(LIKE_BUILD) .cache/golangci-lint run ./...
	cd sdk/go && $(LIKE_BUILD) ../../.cache/golangci-lint run -c ../../.golangci.yml ./...

.PHONY: bench
bench: build ## measure everything and write bench/results/
	go run ./bench

.PHONY: profile
profile: build ## show where the time of an execution, of making a sandbox and of waking one goes
	go run ./bench -profile

.PHONY: soak
soak: test-deps build ## run every repeated test at its full count, and mixed executions for an hour; keep the result
	bin/atoll image build --if-changed --data-dir .cache/test-data
	@ATOLL_DATA_DIR=$(CURDIR)/.cache/test-data scripts/soak.sh

.PHONY: test-pythons
test-pythons: ## run the Python library's tests under the Pythons of releases of Debian and Ubuntu
	@scripts/test-pythons.sh

.PHONY: fuzz
fuzz: ## fuzz every fuzz target for a short while
	@scripts/fuzz.sh
