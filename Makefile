# memfit. `make` alone lists the targets of every day, `make help-all` all; the recipes live in hack/make/, one file per concern.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# go tool keeps what it builds in Go's own cache, so nothing needs installing and PATH needs no GOBIN.
TOOL := go tool -modfile=$(CURDIR)/hack/tools/go.mod
# How all programs are compiled, by scripts and hack/lab as well, so that what they share is compiled once. DWARF is a fifth of the compiler's
# work, and they are linked without it (-s).
SHARED := -trimpath -gcflags=all=-dwarf=false
LAB    := CGO_ENABLED=0 go -C $(CURDIR)/hack/lab run $(SHARED) .

##@ General

# A target with "##*" is one of the few that `make help` shows; "##" is for `make help-all`.
define LIST
@awk -v all='$(1)' 'BEGIN {FS = ":.*##[*]? "; printf "Usage: make \033[36m<target>\033[0m [VAR=value]\n\n"} \
	all && /^##@ / {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} \
	/^[a-zA-Z0-9_-]+:.*##[*] / || all && /^[a-zA-Z0-9_-]+:.*## / {printf "  \033[36m%-20s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)
endef

.PHONY: help
help: ##* List the targets of every day.
	$(call LIST)

.PHONY: help-all
help-all: ##* List all targets.
	$(call LIST,1)

# What make reads as syntax where it is meant as text.
empty :=
comma := ,
space := $(empty) $(empty)

include hack/make/*.mk
