# Real language runtimes, from the package registries, with the environment that memfit gives a pod.

##@ Tests

# For example SKIP="php bun node-12" where something cannot be fetched. Nothing is left out unless it is named.
SKIP ?=

.PHONY: test-runtimes
test-runtimes: ## Start real Node.js, JDKs, Go, Python, Ruby, PHP, Deno and Bun with what memfit injects (fetches 900 MB once).
	SKIP='$(SKIP)' go test -C test/runtimes -count=1 -tags runtimes -timeout 40m # without a package, so that the counts are shown
