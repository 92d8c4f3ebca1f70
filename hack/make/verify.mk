# Checks that read and never write.

##@ Checks

.PHONY: verify
verify: ##* Check formatting, generated files, vet, lint and go.mod; never writes to the tree.
	hack/verify.sh

.PHONY: lint
lint: ##* Run the linters on the operator and on the lab.
	$(TOOL) golangci-lint run ./...
	cd hack/lab && $(TOOL) golangci-lint run --config $(CURDIR)/.golangci.yml ./...

.PHONY: lint-fix
lint-fix: ## Run the linters and let them mend what they can.
	$(TOOL) golangci-lint run --fix ./...
	cd hack/lab && $(TOOL) golangci-lint run --fix --config $(CURDIR)/.golangci.yml ./...

# vale needs gcc to compile, once.
.PHONY: words
words: ## Check the words of docs/, README.md and CONTRIBUTING.md (rules: hack/vale/styles/memfit).
	$(TOOL) vale --output=line docs README.md CONTRIBUTING.md

# Not part of verify: it needs the vulnerability database, and a new entry there must not fail an unrelated change on somebody's machine.
# GOVULNDB=file://FOLDER is a copy of it.
.PHONY: govulncheck
govulncheck: ## Look for known vulnerabilities in what memfit calls (needs the vulnerability database).
	hack/govulncheck.sh
