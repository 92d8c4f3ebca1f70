# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

##@ Lab

# The lab is a Go module of its own, so that its pins never meet those of the operator.
LAB ?= go -C hack/lab run .

.PHONY: lab-binaries
lab-binaries: ## Build the programs of a Kubernetes node from pinned Go modules into the cache.
	@$(LAB) binaries
