# Benchmarks. They print numbers and fail only where a promise with a number is broken.

##@ Benchmarks

# Elsewhere than in the tree, and kept between runs.
BENCH_BIN   ?= $(or $(MEMFIT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/memfit)/bench
BENCH_FLAGS ?=
# The client keeps off the first core, which is the server's.
BENCH_CPU   := $(if $(shell command -v taskset),$(shell n=$$(nproc); [ $$n -gt 1 ] && echo taskset -c 1-$$((n - 1))))

# The tests of test/peers/cluster: IN_CLUSTER is followed by the name of one and its flags. A module of its own, because VPA's packages must not meet
# the operator's pins.
VPA_CRDS = "$$(go -C test/peers list -m -f '{{.Dir}}' $(VPA:/pkg=))/deploy/vpa-v1-crd-gen.yaml"
define BENCH_CLUSTER
mkdir -p $(BENCH_BIN)
	go -C test/peers test -c -tags e2e -o $(BENCH_BIN)/cluster.test ./cluster
	go build -o $(BENCH_BIN)/memfit ./cmd/manager
endef
IN_CLUSTER = env KUBEBUILDER_ASSETS="$$($(LAB) binaries --only etcd,kube-apiserver --print-dir)" $(BENCH_BIN)/cluster.test \
	-test.v -test.timeout=40m -memfit=$(BENCH_BIN)/memfit -vpa-crds=$(VPA_CRDS) -test.run

.PHONY: bench-admission
bench-admission: ## Measure the webhook against one that does nothing and VPA's admission controller (about 3 min, BENCH_FLAGS).
	go test -run '^$$' -bench . -benchmem ./internal/inject ./internal/profile ./webhooks/pod
	$(BENCH_CLUSTER)
	go -C test/peers build -o $(BENCH_BIN)/vpa-admission-controller $(VPA)/admission-controller
	$(BENCH_CPU) $(IN_CLUSTER) TestAdmission -vpa=$(BENCH_BIN)/vpa-admission-controller -workloads=20000 $(BENCH_FLAGS)

# Connections of attackers, idle or slow.
ATTACKERS ?= 1000

.PHONY: bench-hostile
bench-hostile: ## Measure the webhook's p99 and RSS without and with 1000 idle and slow connections; fails at 10 ms or 64 MiB more (about 1 min).
	$(BENCH_CLUSTER)
	$(BENCH_CPU) $(IN_CLUSTER) TestUnderAttack -hostile=$(ATTACKERS) -workloads=2000 -requests=5000 $(BENCH_FLAGS)

# Flags of the part that runs on a simulated cluster, for instance -nodes=50 -workloads=50.
SCALE_CLUSTER_FLAGS ?=

.PHONY: bench-scale
bench-scale: ## Measure memfit's control loop at 1k to 100k containers, and memfit and VPA's recommender on 1000 simulated nodes (about 10 min, BENCH_FLAGS, SCALE_CLUSTER_FLAGS).
	$(BENCH_CLUSTER)
	go -C test/peers build -o $(BENCH_BIN)/vpa-recommender $(VPA)/recommender
	go test -count=1 ./test/scale -v -timeout 30m -args -containers=1000,10000,100000 -hours=6h $(BENCH_FLAGS)
	$(IN_CLUSTER) TestOperators -vpa=$(BENCH_BIN)/vpa-recommender $(SCALE_CLUSTER_FLAGS)

# What runs when memfit starts, and what is rolled out then. 100,000 pods take some 7 GiB of memory and 15 minutes of two cores.
START_PODS    ?= 100000
ROLLOUT_PODS  ?= 10000
# For instance -replicas=1000.
START_FLAGS   ?=

.PHONY: bench-start
bench-start: ## Measure a start with 100,000 pods and a rollout of 10,000; fails at a minute to the first decision, or behind (START_PODS, ROLLOUT_PODS, START_FLAGS).
	$(BENCH_CLUSTER)
	$(IN_CLUSTER) TestStart -pods=$(START_PODS) -rollout=$(ROLLOUT_PODS) $(START_FLAGS)

# What a full run takes: RESCUE_RUNS=3 and all rates about two hours; the default about 25 minutes. Heaps take half an hour
# more, because they load both cores, which ramps must not share with them.
RESCUE_ARMS  ?= nothing,vpa,memfit,rescue
RESCUE_KINDS ?= ramp,sawtooth,leak
RESCUE_RATES ?= 5,25,100,400
RESCUE_RUNS  ?= 1
RESCUE_FLAGS ?=

.PHONY: bench-rescue
bench-rescue: ## Count which containers survive that grow beyond their limit, with nothing, VPA, memfit, and rescue (on the lab's node, with memfit and the agent: make deploy-lab agent-lab; about 25 min; fails when fewer survive than are to; RESCUE_ARMS=rescue RESCUE_KINDS=ramp: 3; RESCUE_KINDS=heap: Node.js, Go and the JVM near their caps; NODE=cgroup2: on that node).
	@mkdir -p dist $(BENCH_BIN)/rescue
	@for part in $(if $(findstring vpa,$(RESCUE_ARMS)),recommender updater); do \
		CGO_ENABLED=0 go -C test/peers build $(SHARED) -ldflags '-s -w' -o $(BENCH_BIN)/rescue/vpa-$$part $(VPA)/$$part || exit; done
	@export $(WITH_CLUSTER); go run ./test/rescuebench -arms $(RESCUE_ARMS) -kinds $(RESCUE_KINDS) \
		-vpa $(BENCH_BIN)/rescue -vpa-crds $(VPA_CRDS) \
		-rates $(RESCUE_RATES) -runs $(RESCUE_RUNS) -at-once 4 -hold 8s -node '$(LAB_NODE)' -out dist/bench-rescue.md $(RESCUE_FLAGS)
