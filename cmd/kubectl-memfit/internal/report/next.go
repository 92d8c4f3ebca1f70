// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/workloadkind"
)

// next returns the next steps for a workload: the messages of its conditions, which name the cause, with commands.
func next(rec *v1alpha1.MemoryRecommendation, r *Row) []string {
	if b := r.Blocked; b != nil { // all other conditions are stale
		return []string{fmt.Sprintf("Not managed (%s): %s", b.Reason, b.Message)}
	}
	var steps []string
	kind, _ := workloadkind.Of(rec.Status.Workload.APIVersion, r.Kind)
	workload := workloadkind.Typed(r.Kind, r.Name)
	if r.Drifts() { // first, because no limit suffices for long
		steps = append(steps, fmt.Sprintf("Memory drifts (%s): %s", r.Drift.Reason, r.Drift.Message))
	}
	if r.Waiting {
		step := fmt.Sprintf("Not applied (%s): %s", r.Applied.Reason, strings.TrimSuffix(r.Applied.Message, "."))
		if len(kind.Template) > 0 && r.PodIdentity == nil { // the classes of nodes of a DaemonSet have one template
			step += fmt.Sprintf(". For Git: kubectl memfit export %s %s", r.where(), workload)
		}
		steps = append(steps, step)
	}
	if step := finding(rec.Status.Conditions, v1alpha1.ConditionSettingsMatchLimit); step.Status == metav1.ConditionFalse {
		steps = append(steps, fmt.Sprintf("Settings do not match the limit (%s): %s", step.Reason, step.Message))
	}
	if c := r.Coverage; c != nil && c.Missed+c.Stale > 0 {
		step := fmt.Sprintf(
			"%d of %d pods run without the profile's settings; memfit's webhook sets them on new pods", c.Missed+c.Stale,
			c.Governed,
		)
		if kind.Restarts {
			step += fmt.Sprintf(": kubectl %s rollout restart %s", r.where(), workload)
		}
		steps = append(steps, step)
	}
	steps = append(steps, rec.Status.Remedies...)
	if !r.Sized() && !meta.IsStatusConditionTrue(rec.Status.Conditions, v1alpha1.ConditionReady) {
		steps = append(steps, unready(rec))
	}
	if r.Stalled {
		steps = append(
			steps, "A container is stalled: "+finding(rec.Status.Conditions, v1alpha1.ConditionMemoryStalled).Message,
		)
	}
	if r.Killed && len(steps) == 0 {
		steps = append(
			steps,
			"The recommended size is unchanged; watch for further kills: "+finding(
				rec.Status.Conditions, v1alpha1.ConditionOOMObserved,
			).Message,
		)
	}
	return steps
}

// unready explains a missing recommended size.
func unready(rec *v1alpha1.MemoryRecommendation) string {
	ready := finding(rec.Status.Conditions, v1alpha1.ConditionReady)
	if ready.Status == "" {
		return "memfit has not evaluated it yet: wait a minute, or check that memfit runs: kubectl -n memfit-system get pods"
	}
	after := ""
	if kills := rec.Status.OOMKills; kills > 0 {
		after = " after " + format.Count(kills, "OOM kill")
	}
	text := fmt.Sprintf("No recommendation yet%s (%s): %s", after, ready.Reason, strings.TrimSuffix(ready.Message, "."))
	if after == "" || len(rec.Status.Remedies) > 0 || len(rec.Status.RecentOOMKills) == 0 {
		return text
	}
	return text + ". " + meanwhile(rec, &rec.Status.RecentOOMKills[0])
}

// meanwhile returns what to do about a container that is OOM-killed and has no recommended size.
func meanwhile(rec *v1alpha1.MemoryRecommendation, last *v1alpha1.OOMKillRecord) string {
	sized := slices.ContainsFunc(rec.Status.Containers, func(c v1alpha1.ContainerRecommendation) bool {
		return c.Container == last.Container
	})
	if !sized {
		return fmt.Sprintf("The last kill was in container %s, which memfit does not size: list it in spec.containers of "+
			"%s %s, or raise its limit yourself", last.Container, rec.Status.Profile.Kind, rec.Status.Profile.Name)
	}
	return fmt.Sprintf("Until then, raise the limit of container %s (%s) yourself; what filled it: kubectl memfit why "+
		"-n %s pod/%s", last.Container, Amount(last.Limit), rec.Namespace, last.Pod)
}

// where returns kubectl's flag for the namespace of a workload.
func (r *Row) where() string { return "-n " + r.Namespace }

// Called returns the kind and the name of a workload for users: "Deployment" and "web", "DaemonSet" and "log
// [m5.large]", or "tekton" and "build/unit" rather than the name of its records.
func (r *Row) Called() (kind, name string) {
	is := r.PodIdentity
	if is == nil {
		return r.Kind, r.Name
	}
	if class := identity.NodeClassOf(is.Platform, is.Values); class != "" {
		return r.Kind, identity.OnNodes(r.Name, class)
	}
	return is.Platform, strings.Join(is.Values, "/")
}

// resource returns a workload in the form of kubectl -o name: "deployment.apps/web".
func (r *Row) resource() string {
	if r.PodIdentity != nil {
		return identity.Title(r.PodIdentity.Platform, r.PodIdentity.Values)
	}
	return workloadkind.Resource(r.APIVersion, r.Kind, r.Name)
}

// title returns the workload's name in the table.
func (r *Row) title() string {
	if r.PodIdentity != nil {
		return r.resource()
	}
	return r.typed()
}

// typed returns the workload in kubectl's form: "deployment/web".
func (r *Row) typed() string {
	if r.PodIdentity != nil {
		return r.Recommendation
	}
	return workloadkind.Typed(r.Kind, r.Name)
}
