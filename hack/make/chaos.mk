# Clusters that break.

##@ Tests

# For example FAULT=leader-dies: the faults whose names begin so. The rows of those that ran are written into docs/chaos.md.
FAULT ?=

.PHONY: chaos
chaos: ## Break a cluster in every way while containers are killed, and hold memfit to figures (about 40 min; FAULT=NAME for some).
	@export KUBEBUILDER_ASSETS="$$($(LAB) binaries --only etcd,kube-apiserver,kube-controller-manager --print-dir)"; \
	CHAOS=1 CHAOS_DOC=$(CURDIR)/docs/chaos.md \
		go test -count=1 ./test/chaos -run 'TestChaos/^$(FAULT)' -v -timeout 120m
