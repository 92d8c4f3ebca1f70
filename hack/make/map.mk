# Profiles as MutatingAdmissionPolicies.

##@ Development

.PHONY: map-sample
map-sample: ## Write config/samples/map: the sample profiles as policies, for clusters without memfit's webhook.
	go run ./hack/mapsample -o config/samples/map $(filter-out %/kustomization.yaml,$(wildcard config/samples/*.yaml))
