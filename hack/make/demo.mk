# The story in real life, and back to nothing.

##@ Demo

# Images of the programs in the story are the lab's; memfit is built from this tree.
DEMO_SETUP ?= cluster image load-image deploy-lab

.PHONY: demo
demo: ## Bring a real node up, install memfit and tell its story with real output (about 15 min cold, 4 warm).
	@for target in $(DEMO_SETUP); do echo "--- make $$target"; $(MAKE) --no-print-directory $$target; done
	@KUBECONFIG="$$($(MAKE) -s --no-print-directory lab-kubeconfig)" go run ./hack/demo --kubectl "$$($(LAB) binaries --only kubectl --print-dir)/kubectl"

.PHONY: demo-down
demo-down: lab-down ## Remove everything the demo made, the node included.
