# What memfit's attribution of memory is worth: real processes are asked for the truth.

##@ Attribution

# EVAL_CASES=c- runs the C programs only.
EVAL_CASES ?=

# The runtimes that are not on the machine, from the registries (test/runtimes).
EVAL_RUNTIMES = node-(18|20|22|24|25|26)|jdk-(11|17.0.9|21.0.8|25)|ruby

.PHONY: eval-attribution
eval-attribution: ## Compare attributed memory with what real processes report themselves (Linux and root; needs gcc; fetches 500 MB once).
	@go test -C test/runtimes -count=1 -tags runtimes -timeout 40m -run 'TestFetch/^($(EVAL_RUNTIMES))' || \
	  echo 'Not all runtimes are available here: the cases of the others are skipped.'
	@go test -count=1 -tags runtimes ./test/evalattribution -run '^Test(Attribution|CollectorCost|HeapCost)$$/$(EVAL_CASES)' -v -timeout 2h

# BENCH_AGENT_FLAGS='-pods 50 -rounds 40' changes how much is measured.

.PHONY: bench-agent
bench-agent: ## Measure what the agent costs beside 105 containers, and what a process notices of it; fails above the bounds of docs/evidence/agent.md (Linux and root; needs gcc; about 5 min).
	@mkdir -p bin && CGO_ENABLED=0 $(GO_BUILD) -o bin/agent ./cmd/agent
	@go test -count=1 -tags e2e ./test/agentbench -v -timeout 30m -args -agent=$(CURDIR)/bin/agent $(BENCH_AGENT_FLAGS)

# Flags of the test, for instance -nodes=50 -pods=30 -hours=3.
BENCH_WRITES_FLAGS ?= -nodes=1000 -namespaces=200

.PHONY: bench-agent-writes
bench-agent-writes: ## Count what the agents of 1000 nodes write in an hour, through a real etcd and kube-apiserver (no kubelets; 19 min beside other work at a load of 30 to 80).
	@KUBEBUILDER_ASSETS="$$($(LAB) binaries --only etcd,kube-apiserver --print-dir)" \
	go test -count=1 ./cmd/agent -run TestWritesOfNodes -v -timeout 60m -args $(BENCH_WRITES_FLAGS)
