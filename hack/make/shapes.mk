# What memfit's classifier of memory curves is worth.

##@ Shapes

# A directory with recordings.csv, labels.csv and NAME.csv.gz: test/recordings/README.md.
RECORDINGS ?= test/recordings

.PHONY: eval-shapes
eval-shapes: ## Classify recordings of real processes and compare with what they were made to do (RECORDINGS=DIR).
	@go test -count=1 ./test/evalshapes -run TestTheBarHolds -v -args -recordings $(abspath $(RECORDINGS))

.PHONY: record-shapes
record-shapes: ## Record the processes of test/recordings anew into dist/recordings (75 minutes; needs node, java, go, python3, ruby).
	test/recordings/record.py --out dist/recordings
