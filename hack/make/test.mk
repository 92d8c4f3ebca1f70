# Tests: `test` needs no cluster, `test-e2e` runs on a real node.

##@ Tests

# How many packages are tested at once; empty: 3, with the race detector 2, which are for the two cores of a small machine.
TEST_PARALLEL ?=
# For example TEST_FLAGS='-run TestImports -v'.
TEST_FLAGS    ?=
# TEST_RACE=1 is what test-race does.
TEST_RACE     ?=

.PHONY: unit
unit: ##* Run the tests of internal/, which need no API server, network or root.
	CGO_ENABLED=0 go test $(SHARED) -p $(or $(TEST_PARALLEL),2) $(TEST_FLAGS) ./internal/...

.PHONY: test
test: ##* Run every test that needs no cluster (builds an API server and etcd when missing); says what it does and what the last run took.
	TEST_RACE=$(TEST_RACE) TEST_PARALLEL=$(TEST_PARALLEL) TEST_FLAGS='$(TEST_FLAGS)' hack/test.sh

.PHONY: test-dashboard
test-dashboard: ## Check the Grafana dashboard against Grafana's own types (needs npm, which fetches them).
	@cd test/monitoring/schema && npm ci --ignore-scripts --no-audit --no-fund --silent && \
		{ echo "import type { Ours } from './types';"; printf 'export const dashboard: Ours = '; cat ../../../config/prometheus/dashboard.json; } >dashboard.ts && \
		npx --no-install tsc -p . && echo "config/prometheus/dashboard.json is a dashboard of @grafana/schema"

.PHONY: test-browser
test-browser: ## Open the page of kubectl memfit report in headless Chromium (installs it as root); pictures in dist/browser.
	@! hack/chromium.sh || go test -tags e2e -count=1 -parallel 5 ./test/browser

.PHONY: test-race
test-race: ## The same with the race detector (needs gcc), and what has bounds on time and memory without it, too.
	@$(MAKE) test TEST_RACE=1

FUZZTIME  ?= 10s
# A pattern of names, for example FUZZ=Quantity. FUZZ_KEEP=10 keeps also inputs that reached new code.
FUZZ      ?= .
FUZZ_KEEP ?= 0

.PHONY: fuzz
fuzz: ## Run every fuzzer for FUZZTIME; what fails is kept as a seed below testdata/fuzz, which `make test` tries from then on.
	FUZZTIME=$(FUZZTIME) FUZZ='$(FUZZ)' FUZZ_KEEP=$(FUZZ_KEEP) TEST_PARALLEL=$(TEST_PARALLEL) hack/fuzz.sh

# What stands before the suite: a node, the images, and the images on the node. Set E2E_SETUP= to reuse what is there.
E2E_SETUP   ?= cluster image load-image load-vpa deploy-lab
E2E_FLAGS   ?= -v -timeout 60m
E2E_PACKAGE ?= ./test/e2e/...

.PHONY: test-e2e
test-e2e: plugin ##* Run the end-to-end suite on a one-node cluster (E2E_SETUP= reuses the running one).
	@hack/steps.sh $(E2E_SETUP)
	@export $(WITH_CLUSTER) IMG=$(IMG) LAB_MODE=$(LAB_MODE); PATH="$(CURDIR)/bin:$$PATH" \
	go test -count=1 -tags e2e $(E2E_PACKAGE) $(E2E_FLAGS)

# What fails on the node of one variant is told at the end, so that one run tells of all of them.
ALL_VARIANTS_PASSED = [ -z "$$failed" ] || { echo "failed on the node of variant:$$failed" >&2; exit 1; }

# memfit on a node with cgroup v2, on a node of each variant; each has specs of its own. The agent reads memory.high.
.PHONY: test-e2e-cgroup2
test-e2e-cgroup2: ## Run what cgroup v2 does otherwise end to end, on a node of each variant (25 min; E2E_SETUP= reuses what is there).
	@hack/steps.sh $(filter-out load-vpa,$(E2E_SETUP))
	@failed=; for variant in $(CGROUP2_VARIANTS); do echo "--- a node with cgroup v2, variant: $$variant"; \
		$(MAKE) --no-print-directory lab-up NODE=cgroup2 NODE_WITH=$${variant#none} || exit; \
		case $$variant in memory-qos) $(MAKE) --no-print-directory agent-lab || exit;; esac; \
		(export $(WITH_CLUSTER); go test -count=1 -tags e2e ./test/e2e/... -ginkgo.label-filter=cgroup2 $(E2E_FLAGS)) || failed="$$failed $$variant"; \
	done; $(ALL_VARIANTS_PASSED)

# A commit or tag; empty: the one that the test names.
OLDER ?=

.PHONY: test-skew
test-skew: ## Mix CRDs, manager, agent and plugin of an older commit with those of this tree on a real API server (OLDER names the commit; no node).
	@assets=$$($(LAB) binaries --only etcd,kube-apiserver,kubectl --print-dir); \
	KUBEBUILDER_ASSETS=$$assets OLDER='$(OLDER)' go test -count=1 -tags e2e ./test/skew -v -timeout 40m

# With the agent beside memfit; its specs are not in test-e2e, which runs without one. They print what the plugin prints.
# NODE=cgroup2 puts what they run on that node.
AGENT_FLAGS ?=

.PHONY: test-agent
test-agent: plugin ## Run the agent's specs on a real node: kills, what fills and would help, maps, scan, Auto, daemons that end (E2E_SETUP= reuses the lab).
	@hack/steps.sh $(if $(E2E_SETUP),$(filter-out load-vpa,$(E2E_SETUP)) agent-lab)
	@export $(WITH_CLUSTER) IMG=$(IMG) LAB_MODE=$(LAB_MODE); PATH="$(CURDIR)/bin:$$PATH" \
	E2E_NODE=$(LAB_NODE) go test -count=1 -tags e2e,agent ./test/e2e -ginkgo.label-filter agent $(E2E_FLAGS) $(AGENT_FLAGS)

# Limits that memfit lowers, from samples of real pods: a day of evidence is 6 min. In test-e2e they are skipped: its memfit counts real days.
.PHONY: test-evidence
test-evidence: plugin ## See limits lowered on a real node from real samples, and rolled back (20 min; E2E_SETUP= reuses a lab with EVIDENCE=240).
	@hack/steps.sh $(if $(E2E_SETUP),$(filter-out deploy-lab,$(E2E_SETUP)))
	@$(if $(E2E_SETUP),$(MAKE) --no-print-directory deploy-lab EVIDENCE=240)
	@export $(WITH_CLUSTER) IMG=$(IMG) LAB_MODE=$(LAB_MODE); PATH="$(CURDIR)/bin:$$PATH" \
	go test -count=1 -tags e2e ./test/e2e -ginkgo.label-filter evidence $(E2E_FLAGS)

# Real neighbors for the suite. From the proxy as they are, in images of their own.
VPA := k8s.io/autoscaler/vertical-pod-autoscaler/pkg

.PHONY: load-vpa
load-vpa: ## Build the Vertical Pod Autoscaler's admission controller and updater, and load them into the node (5 min of processor time at first).
ifeq ($(LAB_MODE),existing)
	@echo "KUBECONFIG is set: what the suite says about VPA is skipped"
else
	@mkdir -p dist/vpa; for part in admission-controller updater; do \
		CGO_ENABLED=0 GOOS=linux go -C test/peers build $(SHARED) -ldflags '-s -w' -o $(CURDIR)/dist/vpa/$$part $(VPA)/$$part; \
		$(LAB) image --binary $(CURDIR)/dist/vpa/$$part --entrypoint /$$part --name memfit.test/vpa-$$part:dev -o $(CURDIR)/dist/vpa/$$part.tar; \
		$(LAB) load $(CURDIR)/dist/vpa/$$part.tar; \
	done
endif

# A platform whose steps have a new owner in each run, as its release has it.
ARGO_VERSION ?= v4.0.5

.PHONY: load-argo
load-argo: ## Build Argo Workflows' controller and executor, and load them into the node (10 min of processor time at first).
ifeq ($(LAB_MODE),existing)
	@echo "KUBECONFIG is set: what the suite says about Argo Workflows is skipped"
else
	@ARGO_VERSION=$(ARGO_VERSION) LAB='$(LAB)' hack/load-argo.sh dist/argo
endif

.PHONY: test-platforms
test-platforms: plugin ## Run workflows of a real Argo Workflows whose steps are killed (3 min; E2E_SETUP= reuses the lab).
	@hack/steps.sh $(if $(E2E_SETUP),$(filter-out load-vpa,$(E2E_SETUP)) load-argo)
	@export $(WITH_CLUSTER); PATH="$(CURDIR)/bin:$$PATH" IMG=$(IMG) LAB_MODE=$(LAB_MODE) \
	ARGO_SOURCE=$(if $(filter existing,$(LAB_MODE)),,$(CURDIR)/dist/argo/src) \
	go test -count=1 -tags e2e ./test/e2e -ginkgo.label-filter platforms $(E2E_FLAGS)

# Odd workloads on a real node, each held to bounds. ADVERSE=failed-before runs only those that memfit once failed; ADVERSE_TABLE=FILE keeps
# the table. Eight at a time: more on two cores, and starting takes longer than what is watched. NODE=cgroup2 runs them on that node, which has
# one processor, three at a time: of eight, pods took 90 s to start, and its kubelet 28 s to answer.
ADVERSE_PARALLEL ?= $(if $(LAB_NODE),3,8)
ADVERSE_RUN ?= TestAdverse

.PHONY: test-adverse
test-adverse: ## Run odd workloads on a real node in every sizing mode and hold memfit to bounds (about 30 min; E2E_SETUP= reuses the lab).
	@for target in $(filter-out load-vpa,$(E2E_SETUP)); do echo "--- make $$target"; $(MAKE) --no-print-directory $$target || exit; done
	@export $(WITH_CLUSTER); ADVERSE_NODE=$(NODE) go test -count=1 -tags e2e ./test/adverse -run '$(ADVERSE_RUN)' -v -timeout 90m -parallel $(ADVERSE_PARALLEL)

# What memfit takes for granted about memory on a node with cgroup v2. Each variant is a node of its own, which starts in seconds.
CGROUP2_VARIANTS ?= none single-process-oom-kill swap memory-qos

.PHONY: test-cgroup2
test-cgroup2: ## Hold what memfit takes for granted about cgroup v2 against a real node of each variant (5 min; 11 more when its kernel is built).
ifeq ($(LAB_MODE),lab)
	@failed=; for variant in $(CGROUP2_VARIANTS); do echo "--- a node with cgroup v2, variant: $$variant"; \
		$(MAKE) --no-print-directory lab-up NODE=cgroup2 NODE_WITH=$${variant#none} || exit; \
		(export $(WITH_CLUSTER); go test -count=1 -tags e2e ./test/cgroup2 -v -timeout 30m) || failed="$$failed $$variant"; \
	done; $(ALL_VARIANTS_PASSED)
else
	@export $(WITH_CLUSTER); go test -count=1 -tags e2e ./test/cgroup2 -v -timeout 30m
endif
