# `make` alone lists the targets.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo example test test-libraries test-programs prove lint bench build release go

# Says in a second, before anything is compiled, where Postgres comes from, or that there is none.
LOOK := internal/localpg/look.sh
GOLANGCI := go tool -modfile=.ci/tools.mod golangci-lint
BOM := go tool -modfile=.ci/release.mod cyclonedx-gomod

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[a-z ]*## \(.*\)/make \1 - \2/p' Makefile

demo: go ## the whole story on throw-away local hosts; KEEP=1 keeps them
	@$(LOOK) >/dev/null && go run ./cmd/kiloshard-lab demo

example: go ## the example service under load while the map changes, a migration runs and a host fails; FOR=60s
	@go run ./router/example/cmd/try -for $(or $(FOR),60s)

# Where Postgres may still fail to come, from a DSN, Docker or a download, one test tries that before all others do. The
# two halves run at the same time: one often waits for servers.
test: go ## all tests, those of libraries with the race detector if there is a C compiler
	@source=$$($(LOOK) "$$KILOSHARD_TEST_POSTGRES") || exit; \
	race=-race; \
	printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | $$(go env CC) -x c -o /dev/null - 2>/dev/null || { \
		if [ "$$CI" = true ]; then echo "make test: no C compiler, so no race detector: install gcc and libc6-dev" >&2; exit 1; fi; \
		echo "make test: no C compiler, so without the race detector" >&2; race=; \
	}; \
	. internal/localpg/tmpdir.sh; \
	[ $$source = local ] || go test $$race -count=1 -run='^TestHostsAreEmpty$$' ./shards/shardtest || exit; \
	$(MAKE) -k -j2 RACE=$$race test-libraries test-programs

# The one list of what runs without the race detector: programs, proofs, benchmarks, the example, what starts no goroutines, and
# the parser of SQL take minutes more with it. What they import has it. They need no C.
PLAIN := /kiloshard/(bench|cmd|internal|sql)(/|$$)|/router/example/|/prove(/|$$)|/migrate/(lint|htmlreport|snapshot|versions)$$|/shards/(adopt|localpg|shardtest|tables)(/|$$)

# Debuggers' data takes half the time of linking, and make lint has all that vet finds.
QUICK := -vet=off -ldflags=-w

# The packages that take longest go first. Garbage is collected less often, which takes memory and saves a tenth of the time.
PACKAGES = { go list $(1); go list ./...; } | awk '!seen[$$0]++'

test-libraries:
	GOGC=400 go test $(RACE) $(QUICK) -shuffle=on -timeout=60m $$($(call PACKAGES,./shards/mapstore) | grep -vE '$(PLAIN)')

test-programs:
	GOGC=400 CGO_ENABLED=0 go test $(QUICK) -shuffle=on -timeout=60m $$($(call PACKAGES,./shards/move/prove) | grep -E '$(PLAIN)')

# What make test has in short.
PROOFS := ./sql/prove/... ./shards/move/prove ./router/prove ./router/entities/prove ./shards/mapstore ./bench/... ./shards/adopt/rows ./router/example/... ./cmd/kiloshard

prove: go ## all faults and benchmarks in full, an hour; IMAGE=postgres:17 or PROVE=published for IDs alone, elsewhere or to see it fail
ifdef IMAGE
	go test -v -count=1 ./sql/prove/model
	@PROVE_FULL=1 PROVE=$(PROVE) sql/prove/in-image.sh $(IMAGE) ./sql/prove -test.v -test.timeout=15m
else
	PROVE_FULL=1 PROVE=$(PROVE) go test -count=1 -timeout=3h $(if $(PROVE),./sql/prove/...,$(PROOFS))
	$(if $(PROVE),,PROVE_FULL=1 go test -count=1 -timeout=1h -run='^TestDrainHost$$' ./shards/move)
endif

lint: go ## linters, go.mod, shell scripts; the first run builds golangci-lint, which takes minutes
	$(GOLANGCI) run --allow-parallel-runners ./...
	go mod tidy -diff
	@if command -v shellcheck >/dev/null; then set -x; shellcheck -x $(LOOK) internal/localpg/tmpdir.sh .ci/run .ci/nightly .ci/setup .ci/bare .ci/debian .ci/postgres-image .ci/postgres-entrypoint sql/prove/in-image.sh; \
	elif [ "$$CI" = true ]; then echo "make lint: shellcheck is missing: install it" >&2; exit 1; \
	else echo "make lint: shellcheck is missing, so the scripts go unchecked" >&2; fi

bench: go ## measure IDs, the making of shards, routing, migrations, moves and an adoption on this machine
	go run ./cmd/kiloshard-lab bench ids
	go run ./cmd/kiloshard-lab bench create
	go run ./cmd/kiloshard-lab bench route
	go run ./cmd/kiloshard-lab bench migrate
	go run ./cmd/kiloshard-lab bench move
	go run ./cmd/kiloshard-lab bench adopt --rows 500000

build: go ## build bin/kiloshard
	go build -trimpath -o bin/kiloshard ./cmd/kiloshard

SYSTEMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

release: go ## build dist: kiloshard for each system, its bill of materials (CycloneDX) and checksums
	rm -rf dist
	set -e; for system in $(SYSTEMS); do \
		file=dist/kiloshard-$$(echo $$system | tr / -); \
		CGO_ENABLED=0 GOOS=$${system%/*} GOARCH=$${system#*/} go build -trimpath -ldflags='-s -w' -o $$file ./cmd/kiloshard; \
		$(BOM) bin -json -output $$file.cdx.json $$file; \
	done
	cd dist && sha256sum * >SHA256SUMS

go:
	@command -v go >/dev/null || { echo "make: Go is missing: install the version that go.mod names, and put it on PATH" >&2; exit 1; }
