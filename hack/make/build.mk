# Generated files, programs, images and manifests.

# What `memfit --version` says. Also right in a clone without tags or outside git.
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# -trimpath, no build id and nothing of git but VERSION: equal source and an equal Go give equal binaries, in any folder.
GO_BUILD  := go build $(SHARED) -buildvcs=false -ldflags '-s -w -buildid= -X main.version=$(VERSION)'
IMG       ?= memfit.test/manager:dev
# The agent's image, for trees with config/agent.
AGENT_IMG ?= memfit.test/agent:dev
# What build-installer, deploy and undeploy work on: config/default, one of config/overlays, or an overlay of your own below config/.
TREE      ?= config/default
KUBECTL   ?= kubectl
KUSTOMIZE := $(TOOL) kustomize

##@ Development

.PHONY: generate
generate: ##* Write generated code, tables of docs and pictures.
	go run ./hack/runtimetable
	$(TOOL) controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...

# controller-gen refuses paths that hold no Go files, and packages appear one after the other.
RBAC_PATHS    = $(strip $(foreach d,controllers webhooks cmd,$(if $(shell find $(d) -name '*.go' 2>/dev/null),paths=./$(d)/...)))
WEBHOOK_PATHS = $(if $(wildcard webhooks/*.go),paths=./webhooks/...)

.PHONY: crds
crds: # a part of manifests
	$(TOOL) controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases

.PHONY: manifests
manifests: crds ##* Write CRDs, RBAC, webhook configuration and what the chart repeats of config/.
ifneq ($(RBAC_PATHS),)
	$(TOOL) controller-gen rbac:roleName=manager-role $(RBAC_PATHS) output:rbac:artifacts:config=config/rbac
endif
ifneq ($(WEBHOOK_PATHS),)
	$(TOOL) controller-gen webhook $(WEBHOOK_PATHS) output:webhook:artifacts:config=config/webhook
endif
	go run ./hack/chart
	@$(MAKE) reference

# Each page of docs/reference is the golden file of a test named TestReference; the page of the API is crd-ref-docs'.
REFERENCE_PAGES := ./hack/reference ./cmd/manager ./cmd/agent ./cmd/kubectl-memfit

.PHONY: reference
reference: ## Write docs/reference: the API, flags, metrics, conditions, reasons and runtimes, from the code.
	$(TOOL) crd-ref-docs --log-level=ERROR --source-path=api --config=hack/reference/crd/config.yaml \
		--renderer=markdown --templates-dir=hack/reference/crd/templates --output-path=docs/reference/api.md
	go test -count=1 $(REFERENCE_PAGES) -run '^TestReference$$' -update

.PHONY: fmt
fmt: ##* Format the Go code and sort its imports.
	$(TOOL) golangci-lint fmt ./...

.PHONY: run
run: ##* Run the manager on this machine against the current kubeconfig, without webhooks.
	ENABLE_WEBHOOKS=false go run -ldflags '-X main.version=$(VERSION)' ./cmd/manager $(ARGS)

##@ Build

.PHONY: build
build: ##* Build bin/manager, bin/agent and bin/kubectl-memfit.
	CGO_ENABLED=0 $(GO_BUILD) -o bin/ ./cmd/manager ./cmd/agent ./cmd/kubectl-memfit

.PHONY: image
image: ##* Build dist/manager.tar, an image without Docker or a registry (IMG names it).
	CGO_ENABLED=0 GOOS=linux $(GO_BUILD) -o dist/image/manager ./cmd/manager
	$(LAB) image --binary $(CURDIR)/dist/image/manager --name $(IMG) -o $(CURDIR)/dist/manager.tar

.PHONY: agent-image
agent-image: ## Build dist/agent.tar, the image of the agent (AGENT_IMG names it).
	CGO_ENABLED=0 GOOS=linux $(GO_BUILD) -o dist/image/agent ./cmd/agent
	$(LAB) image --binary $(CURDIR)/dist/image/agent --entrypoint /agent --name $(AGENT_IMG) -o $(CURDIR)/dist/agent.tar

.PHONY: image-digest
image-digest: image ## Build the image and print its digest: equal source, VERSION and Go give an equal one.
	@$(LAB) digest $(CURDIR)/dist/manager.tar

.PHONY: sbom
sbom: image agent-image build ## Write dist/manager.cdx.json, agent.cdx.json and kubectl-memfit.cdx.json: what manager, agent and plugin are made of (CycloneDX).
	$(LAB) sbom --binary $(CURDIR)/dist/image/manager --version $(VERSION) -o $(CURDIR)/dist/manager.cdx.json
	$(LAB) sbom --binary $(CURDIR)/dist/image/agent --version $(VERSION) -o $(CURDIR)/dist/agent.cdx.json
	$(LAB) sbom --binary $(CURDIR)/bin/kubectl-memfit --version $(VERSION) -o $(CURDIR)/dist/kubectl-memfit.cdx.json

.PHONY: verify-reproducible
verify-reproducible: ## Build images, plugin, SBOMs and chart twice, elsewhere and with nothing cached, and compare (4 min on two idle cores).
	hack/reproducible.sh

.PHONY: build-installer
build-installer: ## Write dist/install.yaml: everything `kubectl apply -f` needs (IMG names the image, TREE the overlay).
	@$(call with_image,$(TREE)) > dist/install.yaml
	@echo "dist/install.yaml: $$(grep -c '^kind:' dist/install.yaml) objects, image $(IMG)"

# The image is set in a copy, so that no target leaves config/ edited. (Under dist/: go tool works only inside the module.)
with_image = mkdir -p dist && copy=$$(mktemp -d dist/config.XXXXXX) && trap 'rm -rf "$$copy"' EXIT && cp -r config "$$copy/" \
	&& (cd "$$copy/config/manager" && $(KUSTOMIZE) edit set image controller=$(IMG)) \
	&& (cd "$$copy/config/agent/watch" && $(KUSTOMIZE) edit set image agent=$(AGENT_IMG)) && $(KUSTOMIZE) build "$$copy/$(1)"

##@ Deployment (to the cluster kubectl points at)

.PHONY: install
install: ## Install the CRDs.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: ## Remove the CRDs, and with them every MemoryProfile.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: ##* Deploy memfit to the current kubeconfig (IMG, AGENT_IMG, TREE).
	$(call with_image,$(TREE)) | $(KUBECTL) apply --server-side -f -

.PHONY: undeploy
undeploy: ## Remove memfit and its CRDs (TREE names the overlay it was deployed with).
	$(KUSTOMIZE) build $(TREE) | $(KUBECTL) delete --ignore-not-found -f -
