# What memfit's attribution of memory is worth: real processes are asked for the truth.

##@ Attribution

# EVAL_FLAGS='-run c- -v' runs the C programs only and prints the regions of each process.

.PHONY: eval-attribution
eval-attribution: ## Start real processes, say from outside where their memory is, and compare with what they say (Linux and root; needs gcc).
	@mkdir -p bin && go build -o bin/evalattribution ./test/evalattribution && bin/evalattribution $(EVAL_FLAGS)
