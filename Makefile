# kgpu: build, try, test. `make demo`, `make recording`, `make test`, `make test-all`, `make chaos` and `make bench` need root: the lab boots hosts.

VERSION     := $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
LAB         := scripts/lab/lab
CYCLONEDX   := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZ        := 3600
SHELL_FILES  = $(shell git ls-files --cached --others --exclude-standard 'scripts/runner/*.sh' 'scripts/lab/*.sh') scripts/dist.sh $(LAB) .ci/run
UNIT        := -vet=off -p 4 -timeout 30m # lint vets; most of what they do is wait for programs
# The packages in which something runs beside something else: the race detector makes tests take six times as long.
CONCURRENT   = $(shell git grep -lE '^\s+go [a-z]|[.]Go\b|"sync' -- '*.go' ':!scripts' | xargs -n 1 dirname | sort -u | sed 's|^|./|')
# What takes most of that, and shares nothing, runs without the detector: the hashing of passphrases, and compression.
UNSHARED    := golang.org/x/crypto/blowfish compress/flate
PACKAGES    := apt-utils curl dpkg-dev e2fsprogs fish gcc git gpg gpgv groff-base iproute2 iptables libc6-dev make openssh-client openssh-server procps python3 rust-coreutils shellcheck sudo tcsh tmux util-linux zsh

# go.mod names a Go that an older one (from 1.21 on) may fetch; distributions turn that off.
export GOTOOLCHAIN ?= auto

# Compilers, linters and tests live for moments: that they collect garbage as often as a server does takes up to a quarter of what
# the processors do. There is a limit to what each of them has.
export GOGC       ?= 400
export GOMEMLIMIT ?= 3GiB

.PHONY: build
build: ## bin/kgpu, the same bytes from the same source
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)" -o bin/kgpu .

.PHONY: dist
dist: ## dist/: a release's programs, with SHA256SUMS and bills of materials, checked
	scripts/dist.sh $(VERSION) $(CYCLONEDX)

.PHONY: demo
demo: build ## boot three hosts, make a cluster of them, show that it works
	scripts/lab/demo.sh

.PHONY: demo-down
demo-down: ## remove the demo's hosts
	$(LAB) destroy
	rm -f examples/lab.kubeconfig

.PHONY: recording
recording: build ## docs/recording.cast: the first afternoon, on the lab's hosts
	scripts/lab/recording.sh

.PHONY: test test-all
test: SHORT := -short
test: ## what decides whether a change lands: lint, unit tests, the promises on lab hosts
test-all: ## all tests: also the matrix of versions, runtimes and networks on lab hosts, and what is long
# make 4.3 may begin lint when plain has ended if it comes before: it loses sight of what ends while it expands a recipe.
test test-all: setup build
	$(MAKE) --no-print-directory -j 3 plain labs SHORT=$(SHORT)

.PHONY: labs
labs: race lint prepare # what runs on lab hosts, beside what is left of plain: its end waits more than it computes
	scripts/lab/tests.sh $(SHORT)

.PHONY: plain
plain: # those without the race detector, of which ./scripts takes the longest and begins first: it leaves the processors time for the rest
	go test -parallel 6 $(UNIT) ./scripts $(filter-out ./scripts $(CONCURRENT),$(shell go list -f '.{{slice .ImportPath 13}}' ./...))

.PHONY: race
race: # those with the race detector, and a little fuzzing
	go test -race -parallel 4 $(UNIT) $(UNSHARED:%=-gcflags=%=-race=false) $(CONCURRENT)
	scripts/fuzz.sh 1000x

.PHONY: prepare
prepare: # what the lab's hosts are made of
	$(LAB) prepare docker noble gpu

.PHONY: fuzz
fuzz: ## an hour of fuzzing, which all targets share (FUZZ=SECONDS), with how often each was executed
	scripts/fuzz.sh $(FUZZ)

.PHONY: bench
bench: build ## kgpu up with nothing to do, doctor and status, beside a bare program that runs the same scripts
	cd scripts/lab && go run ./bench

.PHONY: outside
outside: ## with internet: everything that kgpu names out there, and what of it is dead, changed, aged or has something newer
	cd scripts/lab && go run ./outside $(OUTSIDE)

.PHONY: chaos
chaos: build ## hundreds of seeded faults on lab hosts, with a summary
	cd scripts/lab && go run ./chaos $(CHAOS)

.PHONY: docs
docs: ## write the pages of docs/ that are made from the sources
	go test ./docs -update

.PHONY: lint
lint: setup ## formatting, vet, static analysis, shell scripts
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "make fmt would change:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...
	cd scripts/lab && go vet ./... && go run $(STATICCHECK) ./...
	shellcheck $(SHELL_FILES)
	scripts/lint.sh

.PHONY: fmt
fmt: ## format the Go code
	gofmt -w $$(git ls-files --cached --others --exclude-standard '*.go')

.PHONY: setup
setup: # the Debian packages that the tests need
	@missing=; for p in $(PACKAGES); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing; fi

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12
