# What a release consists of, built on any machine with Go and without Docker.

##@ Release

# Where images and the chart go: a host and a path. There is no default.
REGISTRY ?=
# What verify-release calls the release that nobody gets.
RELEASE_VERSION ?= v0.1.0

.PHONY: chart
chart: ## Write dist/chart, dist/memfit-VERSION.tgz: the Helm chart with the version in it.
	@echo "dist/memfit-$$(go run ./hack/chart package -version '$(VERSION)' -o dist).tgz"

.PHONY: release
release: ## Build all of a release into dist/release, send it to REGISTRY and sign it; DRY=1 only builds (10 min on two idle cores).
	VERSION='$(VERSION)' REGISTRY='$(REGISTRY)' DRY='$(DRY)' hack/release.sh

.PHONY: verify-release
verify-release: ## Build all of a release twice, the second time elsewhere and with nothing cached, and compare (ARCHES, PLUGINS make it smaller).
	VERSION='$(RELEASE_VERSION)' hack/verify-release.sh

.PHONY: test-chart-api
test-chart-api: ## The same as test-chart on an API server without nodes: what becomes of the objects, but no pod runs (2 min).
	@assets=$$($(LAB) binaries --only etcd,kube-apiserver,kubectl --print-dir); unset KUBECONFIG; \
	KUBEBUILDER_ASSETS=$$assets PREVIOUS='$(PREVIOUS)' go -C test/chart test -count=1 -tags e2e -run 'TestLifecycle|TestFirstInstall|TestAnUpgrade' -v -timeout 30m .

.PHONY: test-chart
test-chart: ## Install, upgrade, roll back and remove the chart on a real cluster with Helm's library (PREVIOUS names the older chart).
	@hack/steps.sh cluster image agent-image
ifneq ($(LAB_MODE),existing)
	@$(LAB) load $(CURDIR)/dist/manager.tar && $(LAB) load $(CURDIR)/dist/agent.tar
endif
	@export $(WITH_CLUSTER) IMG=$(IMG) AGENT_IMG=$(AGENT_IMG) PREVIOUS='$(PREVIOUS)' \
		PREVIOUS_IMG='$(PREVIOUS_IMG)' PREVIOUS_AGENT_IMG='$(PREVIOUS_AGENT_IMG)'; \
	go -C test/chart test -count=1 -tags e2e -run 'TestLifecycle|TestFirstInstall' -v -timeout 30m .
