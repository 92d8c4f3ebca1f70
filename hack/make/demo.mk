# The story in real life, and back to nothing.

##@ Demo

# KUBECONFIG and kubectl of the cluster that demo and e2e use, whichever it is; resolved when a recipe runs.
WITH_CLUSTER = KUBECONFIG=$(CLUSTER_KUBECONFIG) PATH="$$($(LAB) binaries --only kubectl --print-dir):$$PATH"

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
	&& $(KUSTOMIZE) build dist/lab-evidence > dist/lab.yaml

.PHONY: deploy-lab
deploy-lab: ## Install memfit into the cluster that demo and e2e use, and wait until it serves (EVIDENCE=144 compresses evidence).
	@export $(WITH_CLUSTER); \
	overlay=config/overlays/lab; \
	kubectl get crd certificates.cert-manager.io >/dev/null 2>&1 || { \
		overlay=config/overlays/self-managed-certs; echo "No cert-manager here: memfit manages its certificates itself"; }; \
	mkdir -p dist; $(call with_image,$$overlay) > dist/lab.yaml; \
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
	@export $(WITH_CLUSTER); mkdir -p dist; $(KUSTOMIZE) build config/overlays/lab-agent > dist/lab-agent.yaml; \
	kubectl apply --server-side --force-conflicts -f dist/lab-agent.yaml | tail -n 3; \
	kubectl -n memfit-agent rollout restart daemonset/memfit-agent; \
	kubectl -n memfit-agent rollout status daemonset/memfit-agent --timeout=120s
endif

# What the manifests of hack/demo run; the lab's other images are built when something else needs them.
DEMO_IMAGES = $$(sed -nE 's,.*image: memfit.test/([a-z]+):.*,\1,p' hack/demo/manifests/*.yaml | sort -u | paste -sd,)

.PHONY: demo
demo: ##* Bring up a node, install memfit and show what it does (about 15 min cold, 4 warm).
	@LAB_IMAGES=$(DEMO_IMAGES) hack/steps.sh cluster image load-image deploy-lab
	@export $(WITH_CLUSTER); go run ./hack/demo

dist/cast: $(wildcard hack/cast/*.go hack/cast/*.tmpl)
	@go -C hack/cast build -o $(CURDIR)/$@ .

.PHONY: cast
cast: dist/cast ## Tell the story in a terminal that is recorded: docs/images/demo.cast, and demo.svg, which plays it (as long as make demo).
	@LAB_IMAGES=$(DEMO_IMAGES) hack/steps.sh cluster image load-image deploy-lab
	@go build -o dist/demo ./hack/demo; export $(WITH_CLUSTER); \
	dist/cast -title 'make demo: a Node.js service dies of its bursts, gets its settings, gets its size, and lives' -o docs/images/demo.cast dist/demo
	@$(MAKE) cast-picture

.PHONY: cast-picture
cast-picture: dist/cast ## Draw docs/images/demo.svg from docs/images/demo.cast.
	@dist/cast -draw docs/images/demo.cast -o docs/images/demo.svg

.PHONY: demo-down
demo-down: lab-down ## Remove everything the demo made, the node included; the cache of built programs stays.
