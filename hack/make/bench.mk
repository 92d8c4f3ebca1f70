# Benchmarks. They print numbers and fail only where a promise with a number is broken.

##@ Benchmarks

# Elsewhere than in the tree, and kept between runs.
BENCH_BIN   ?= $(or $(MEMFIT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/memfit)/bench
BENCH_FLAGS ?=
# The client keeps off the first core, which is the server's.
BENCH_CPU   := $(if $(shell command -v taskset),$(shell n=$$(nproc); [ $$n -gt 1 ] && echo taskset -c 1-$$((n - 1))))

.PHONY: bench-admission
bench-admission: ## Measure the webhook against one that does nothing and VPA's admission controller (about 3 min, BENCH_FLAGS).
	go test -run '^$$' -bench . -benchmem ./internal/inject ./internal/profile ./webhooks
	mkdir -p $(BENCH_BIN)
	go build -o $(BENCH_BIN)/admissionbench ./test/admissionbench
	go -C test/peers build -o $(BENCH_BIN)/vpa-admission-controller k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller
	$(BENCH_CPU) $(BENCH_BIN)/admissionbench --vpa $(BENCH_BIN)/vpa-admission-controller $(BENCH_FLAGS)

# A module of its own: VPA's packages must not meet the operator's pins.
.PHONY: bench-scale
bench-scale: ## Measure processor time, heap, checkpoints and API writes of memfit and VPA's recommender at 1k to 100k containers (BENCH_FLAGS).
	go -C test/scalebench run . $(BENCH_FLAGS)
