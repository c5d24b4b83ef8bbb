# make help lists what there is.
GOLANGCI := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 10s
export GOFLAGS += -buildvcs=false
# Go's own stamp fails in a checkout of another user, so the build is told.
COMMIT = $(shell git describe --always --abbrev=40 --exclude '*' --dirty=+changes 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help build test race lint gen verify fuzz bench py e2e release-check

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

build: ## the static binary, in bin/
	CGO_ENABLED=0 go build -trimpath -ldflags "-X github.com/reeve-run/reeve/internal/cli.Commit=$(COMMIT)" -o bin/reeve ./cmd/reeve

test: ## all tests
	go test ./...

race: ## all tests under the race detector
	CGO_ENABLED=1 go test -race ./...

lint: ## gofmt, vet and every linter
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	$(GOLANGCI) run ./...

gen: ## generated files, and the conformance page from a test run
	go generate ./...
	go run ./internal/gen/conformance

verify: ## fails when a generated file or go.mod is stale
	go generate ./...
	go mod tidy -diff
	git diff --stat --exit-code

fuzz: ## every fuzz target for FUZZTIME
	@git ls-files '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' | while IFS=: read -r file name; do \
		go test -run '^$$' -fuzz "^$${name#func }$$" -fuzztime $(FUZZTIME) "./$${file%/*}" || exit 1; done

bench: ## the paired runs beside their peers
	bench/peers.sh

py: ## types and tests of the worker
	cd python && mypy --strict .
	go test ./python

e2e: build ## the demo, with the built binary
	bin/reeve demo

release-check: ## everything CI checks
	.ci/run
