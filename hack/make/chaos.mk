# Clusters that break.

##@ Tests

# For example FAULT=leader-dies: the faults whose names begin so. The rows of those that ran are written into docs/evidence/chaos.md.
FAULT ?=

.PHONY: chaos
chaos: ## Break a cluster in every way while containers are killed, and hold memfit to figures (about 40 min; FAULT=NAME for some).
	@export KUBEBUILDER_ASSETS="$$($(LAB) binaries --only etcd,kube-apiserver,kube-controller-manager --print-dir)"; \
	CHAOS=1 CHAOS_DOC=$(CURDIR)/docs/evidence/chaos.md \
		go test -count=1 ./test/chaos -run 'TestChaos/^$(FAULT)' -v -timeout 120m

# How long, and how many pods. Two hundred take about 10 GiB, most of it their shims. One node takes 200 at most, with
# memfit's and those that a rollout adds.
SOAK       ?= 60m
SOAK_PODS  ?= $(if $(LAB_NODE),200,160)
# What stands before it. NODE=cgroup2 puts a fifth of the pods on a second node.
SOAK_SETUP ?= cluster image load-image deploy-lab agent-lab

.PHONY: soak
soak: ## Run SOAK_PODS governed pods on the lab for SOAK=60m: memfit's own memory, its counts beside the kernel's, its effect (NODE=cgroup2 for two nodes).
	@LAB_IMAGES=goprobe hack/steps.sh $(SOAK_SETUP)
	@export $(WITH_CLUSTER) SOAK=$(SOAK) SOAK_PODS=$(SOAK_PODS) SOAK_GUEST_LOG='$(if $(LAB_NODE),$(LAB) logs cgroup2-node)'; \
		go test -count=1 -tags e2e ./test/soak -run TestSoak -v -timeout 48h
