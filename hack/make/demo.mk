# The story in real life, and back to nothing.

##@ Demo

# KUBECONFIG and kubectl of the cluster that demo and e2e use, whichever it is; resolved when a recipe runs. The lab has
# its own kubectl; another cluster is used with the machine's, and one is compiled only where there is none.
WITH_CLUSTER = KUBECONFIG=$(CLUSTER_KUBECONFIG) $(if $(and $(filter-out lab,$(LAB_MODE)),$(shell command -v kubectl)),,PATH="$$($(LAB) binaries --only kubectl --print-dir):$$PATH")

# The lab's kubectl has kustomize built in, which need not be compiled then. Older ones fail: 1.32 panics at our overlays.
LAB_KUSTOMIZE = $(if $(filter lab,$(LAB_MODE)),kubectl kustomize,$(KUSTOMIZE) build)
# What is applied to the cluster that demo and e2e use: a tree of config/ with IMG.
lab_tree = mkdir -p dist/lab && { printf 'resources: [../../%s]\nimages:\n' "$(1)"; image=$(IMG); \
	printf -- '- {name: %s, newName: "%s", newTag: "%s"}\n' controller "$${image%:*}" "$${image\#\#*:}" \
	memfit.test/manager "$${image%:*}" "$${image\#\#*:}"; } > dist/lab/kustomization.yaml && $(LAB_KUSTOMIZE) dist/lab

# memfit itself: built from this tree, loaded into the node, rolled out again even when the tag is the same.
.PHONY: load-image
load-image: ## Load dist/manager.tar into the cluster that demo and e2e use (an existing cluster pulls IMG itself).
ifeq ($(LAB_MODE),existing)
	@echo "KUBECONFIG is set: push $(IMG) and the images of hack/demo/manifests where that cluster can pull them"
else
	@$(LAB) load $(CURDIR)/dist/manager.tar
endif

# Compressed evidence for tests: EVIDENCE=144 makes a day of evidence take ten minutes (config/compress-evidence). Empty: off.
EVIDENCE ?=

# Adds config/compress-evidence, with the factor of EVIDENCE, to what dist/lab.yaml has.
compress_evidence = rm -rf dist/lab-evidence && mkdir -p dist/lab-evidence && mv dist/lab.yaml dist/lab-evidence/memfit.yaml \
	&& cp -r config/compress-evidence dist/lab-evidence/ \
	&& sed -i 's/value: "144"/value: "$(EVIDENCE)"/' dist/lab-evidence/compress-evidence/manager_patch.yaml \
	&& printf 'resources: [memfit.yaml]\ncomponents: [compress-evidence]\n' > dist/lab-evidence/kustomization.yaml \
	&& $(LAB_KUSTOMIZE) dist/lab-evidence > dist/lab.yaml

.PHONY: deploy-lab
deploy-lab: ## Install memfit into the cluster that demo and e2e use, and wait until it serves (EVIDENCE=144 compresses evidence).
	@export $(WITH_CLUSTER); \
	overlay=config/overlays/lab; \
	kubectl get crd certificates.cert-manager.io >/dev/null 2>&1 || { \
		overlay=config/overlays/self-managed-certs; echo "No cert-manager here: memfit manages its certificates itself"; }; \
	mkdir -p dist; $(call lab_tree,$$overlay) > dist/lab.yaml; \
	$(if $(EVIDENCE),$(compress_evidence) || exit 1;) \
	have=$$(kubectl -n memfit-system get secret webhook-server-cert -o jsonpath='{.type}' --ignore-not-found); \
	case $$overlay/$$have in *lab/Opaque) echo "Replacing an installation that managed its certificates itself"; \
		kubectl -n memfit-system delete deployment memfit-controller-manager --cascade=foreground --ignore-not-found; \
		kubectl -n memfit-system delete secret webhook-server-cert;; \
	esac; \
	kubectl apply --server-side --force-conflicts -f dist/lab.yaml | tail -n 3; \
	kubectl -n memfit-system rollout restart deployment/memfit-controller-manager; \
	kubectl -n memfit-system rollout status deployment/memfit-controller-manager --timeout=180s; \
	kubectl wait mutatingwebhookconfiguration/memfit-mutating-webhook-configuration --timeout=60s \
		--for=jsonpath='{.webhooks[0].clientConfig.caBundle}'

# The agent alone; memfit itself comes with deploy-lab, before or after.
.PHONY: agent-lab
agent-lab: agent-image ## Run the agent at tier See on the cluster that demo and e2e use (config/overlays/lab-agent), and wait until it runs.
ifeq ($(LAB_MODE),existing)
	@echo "KUBECONFIG is set: push $(AGENT_IMG) where that cluster can pull it, and make deploy TREE=config/overlays/agent-see"
else
	@$(LAB) load $(CURDIR)/dist/agent.tar
	@export $(WITH_CLUSTER); mkdir -p dist; $(LAB_KUSTOMIZE) config/overlays/lab-agent > dist/lab-agent.yaml; \
	kubectl apply --server-side --force-conflicts -f dist/lab-agent.yaml | tail -n 3; \
	kubectl -n memfit-agent rollout restart daemonset/memfit-agent; \
	kubectl -n memfit-agent rollout status daemonset/memfit-agent --timeout=120s
endif

# What the manifests of hack/demo run; the lab's other images are built when something else needs them.
DEMO_IMAGES = $$(sed -nE 's,.*image: memfit.test/([a-z]+):.*,\1,p' hack/demo/manifests/*.yaml | sort -u | paste -sd,)

.PHONY: demo
demo: ##* Show what memfit does, without a cluster first, then on a node that is compiled meanwhile (dist/demo.times: what it took).
	@mkdir -p dist; LAB_IMAGES=$(DEMO_IMAGES) LAB_CERT_MANAGER=0 hack/demo.sh 2>&1 | tee dist/demo.log

.PHONY: demo-story
demo-story: # a part of demo
	@export $(WITH_CLUSTER); dist/demo

.PHONY: demo-times
demo-times: ## Write into README.md what the last make demo took.
	@test -s dist/demo.times || { echo "make demo has not written dist/demo.times"; exit 1; }
	@awk 'FNR == NR { times = $$0; next } /^Measured by `make demo`: / { print "Measured by `make demo`: " times "."; next } { print }' \
		dist/demo.times README.md > dist/README.md && cp dist/README.md README.md

.PHONY: demo-down
ifeq ($(LAB_MODE),lab)
demo-down: lab-down ## Remove what the demo made: the node; with KIND=1 its cluster; on your cluster memfit and the demo's namespace. The cache of built programs stays.
else ifeq ($(LAB_MODE),kind)
demo-down:
	@kind delete cluster --name memfit
else
demo-down:
	@export $(WITH_CLUSTER); kubectl delete namespace memfit-demo --ignore-not-found
	@export $(WITH_CLUSTER); test ! -e dist/lab.yaml || kubectl delete --ignore-not-found -f dist/lab.yaml
endif
