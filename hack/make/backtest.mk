# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

##@ Backtest

# Directories with NAME.csv.gz or NAME.csv (series,unix_seconds,bytes), separated by commas. Without it the generated sets alone are replayed.
TRACES ?=
# Seeds of the generated sets, separated by commas.
SEEDS  ?= 1,2
# BACKTEST_FLAGS= reports without failing when memfit loses what held.txt says it held; -sensitivity prints what a quarter less and more of every
# constant does to total cost, and -priors what it does to know other workloads of the same image.
BACKTEST_FLAGS ?= -check held.txt

# In the module of peers: the packages of VPA must not meet the pins of the operator.
.PHONY: backtest
backtest: ## Replay memory traces for memfit and VPA in one run: make backtest TRACES=DIR; plots in test/peers/backtest/out.
	@go -C test/peers/backtest run -mod=mod . -traces '$(subst $(space),,$(foreach d,$(subst $(comma), ,$(TRACES)),$(abspath $(d))$(comma)))' -seeds '$(SEEDS)' -out out $(BACKTEST_FLAGS)

.PHONY: test-backtest
test-backtest: ## Test the backtest: its simulator, the published VPA figures (with TRACES), memfit against VPA.
	@TRACES='$(if $(TRACES),$(abspath $(TRACES)))' go -C test/peers/backtest test -mod=mod ./...
