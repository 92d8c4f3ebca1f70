# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# The five articles that memfit was made from, told again on a real node.

##@ Demo

# The story to tell: go, node, jvm, ruby or udp; empty: all. NODE=cgroup2 tells them on that node, without the arms
# that one processor and 5 GiB are not enough for.
STORY ?=

# The Go program of a story is an image of its own; those of the others are files that the lab's images run.
.PHONY: articles-image
articles-image: ## Build dist/sales.tar, the Go program of hack/articles, and load it into the cluster that demo and e2e use.
	@CGO_ENABLED=0 GOOS=linux go -C hack/articles build $(SHARED) -o $(CURDIR)/dist/image/sales ./programs/sales
	@$(LAB) image --binary $(CURDIR)/dist/image/sales --entrypoint /sales --name memfit.test/sales:dev -o $(CURDIR)/dist/sales.tar
	@$(LAB) load $(CURDIR)/dist/sales.tar

.PHONY: plugin
plugin:
	@CGO_ENABLED=0 $(GO_BUILD) -o bin/ ./cmd/kubectl-memfit

.PHONY: articles
articles: ## Repeat the five articles, without memfit and with it, on a real node; writes docs/evidence/articles.md and dist/articles (STORY=go: one, to dist/articles; 11 min on two idle processors).
	@LAB_IMAGES=node,jdk,jre,ruby hack/steps.sh cluster image load-image deploy-lab agent-lab articles-image plugin
	@export $(WITH_CLUSTER); PATH="$(CURDIR)/bin:$$PATH" go -C hack/articles run . -story '$(STORY)' \
		$(if $(LAB_NODE),-node $(LAB_NODE)) $(ARTICLES_FLAGS)
