// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

// unnamed is, by container, what to do about init containers that were OOM killed and that memfit does not size
// because the profile does not list them. Without it a pod that never gets past such a container has a count of kills
// and no advice.
func unnamed(
	p *profile.Profile, pod *corev1.Pod, kills func(container string) []memory.OOMKill, total func(container string) int64,
) map[string]string {
	texts := map[string]string{}
	for i := range pod.Spec.InitContainers {
		name := pod.Spec.InitContainers[i].Name
		known := kills(name)
		if len(known) == 0 || !p.Container(name, pod.Annotations).Managed ||
			slices.ContainsFunc(Managed(p, pod), func(c managedContainer) bool { return c.Name == name }) {
			continue
		}
		last := known[len(known)-1]
		limit := "no limit of its own"
		if last.Limit > 0 {
			limit = "limit " + last.Limit.String()
		}
		texts[name] = fmt.Sprintf("Init container %s was OOM killed %s, last at %s with %s; init containers are only "+
			"sized when the profile lists them: add {name: %s} to spec.containers of %s, or raise its limit yourself", name,
			format.Count(total(name), "time"), format.Time(last.Time), limit, name, p)
	}
	return texts
}
