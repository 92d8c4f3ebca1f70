# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

##@ Lab

# Where demo and end-to-end tests run:
#   existing  KUBECONFIG is set (and is not the lab's own): that cluster is used as it is
#   kind      KIND=1: a kind cluster named memfit is made, or reused
#   lab       otherwise: a real one-node cluster on this machine; Linux and root
# hack/lab decides, so that make and the lab never disagree.
# MEMFIT_LAB=NAME is another lab beside the first one, with everything of its own.
# LAB_KUBERNETES=1.34, 1.35 or 1.36 is another version of Kubernetes than the usual one (hack/lab/README.md).
# NODE=cgroup2 adds a second node to the lab, with cgroup v2; NODE_WITH=swap,memory-qos,single-process-oom-kill are its variants (NODE_OPTIONS would
# be Node.js's own). npm sets NODE to the path of a program, which is none of ours.
export LAB_NODE      := $(if $(findstring /,$(NODE)),,$(or $(NODE),$(LAB_NODE)))
export LAB_NODE_WITH := $(or $(NODE_WITH),$(LAB_NODE_WITH))
LAB_KUBECONFIG := $(if $(MEMFIT_LAB),/var/lib/memfit-labs/$(MEMFIT_LAB),/var/lib/memfit-lab)/kubeconfig
LAB_MODE := $(if $(filter-out $(LAB_KUBECONFIG),$(KUBECONFIG)),existing,$(if $(filter-out 0,$(KIND)),kind,lab))

# The lab is a Go module of its own, so that its pins never meet those of the operator.
# Compiled as everything that it compiles, so that both share what they have in common. Without paths in the program it
# does not know where its modules are.
LAB ?= CGO_ENABLED=0 go -C hack/lab run $(SHARED) .
export MEMFIT_LAB_SOURCE := $(CURDIR)/hack/lab
# LAB_CERT_MANAGER=0 leaves cert-manager out: memfit manages its certificates itself, as in make demo.

# A recipe that needs a cluster depends on `cluster` and then uses $(CLUSTER_KUBECONFIG), which names the file only when
# the recipe runs:
#   demo: cluster
#   	KUBECONFIG=$(CLUSTER_KUBECONFIG) hack/demo.sh
CLUSTER_KUBECONFIG = $$($(LAB) kubeconfig)

.PHONY: cluster
cluster: ## Bring up whatever cluster demo and e2e run on: KUBECONFIG, kind (KIND=1) or the lab.
	@$(LAB) cluster-up >/dev/null

.PHONY: lab-up
lab-up: ## Start a real one-node cluster on this machine (Linux, root), or reuse the healthy one. NODE=cgroup2 adds a node with cgroup v2.
	@$(LAB) up

.PHONY: lab-down
lab-down: ## End the lab and clean up, also after a crash. The cache stays.
	@$(LAB) down

.PHONY: lab-status
lab-status: ## Say what runs in the lab, whether it is well, and where its API server and logs are.
	@$(LAB) status

.PHONY: lab-kubeconfig
lab-kubeconfig: ## Print the path of the kubeconfig of the cluster that demo and e2e use.
	@$(LAB) kubeconfig
