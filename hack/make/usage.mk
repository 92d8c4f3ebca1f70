# Reading usage: what one look at a large cluster costs.

##@ Usage

.PHONY: bench-usage
bench-usage: ## Print what reading the usage of 5,000 nodes x 30 pods costs: CPU, bytes allocated, peak heap and RSS per cycle, without and with HTTPS.
	go test -run '^$$' -bench 'BenchmarkDecodeSummary|BenchmarkCycle' -benchtime 5x ./internal/usage/kubelet
