// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/workloadkind"
)

// next returns what to do about a workload, most urgent first: messages of its conditions, with commands.
func next(r *Row) []string {
	if r.blocked() { // all other conditions are stale
		return []string{r.because("Not managed", v1alpha1.ConditionStalled)}
	}
	var steps []string
	kind, _ := workloadkind.Of(r.APIVersion, r.Kind)
	workload := workloadkind.Typed(r.Kind, r.Name)
	if r.drifts() { // first, because drifting memory outgrows every limit
		steps = append(steps, r.because("Memory drifts", v1alpha1.ConditionDriftDetected))
	}
	if r.Waiting {
		step := strings.TrimSuffix(r.because("Not applied", v1alpha1.ConditionApplied), ".")
		if len(kind.Template) > 0 && r.Status.Identity == nil { // export refuses node classes
			step += fmt.Sprintf(". For Git: kubectl memfit export -n %s %s", r.Namespace, workload)
		}
		steps = append(steps, step)
	}
	if r.condition(v1alpha1.ConditionSettingsMatchLimit).Status == metav1.ConditionFalse {
		steps = append(steps, r.because("Settings do not match the limit", v1alpha1.ConditionSettingsMatchLimit))
	}
	if c := r.Status.Coverage; c != nil && c.Missed+c.Stale > 0 {
		step := fmt.Sprintf(
			"%d of %d pods run without the profile's settings; memfit's webhook sets them on new pods", c.Missed+c.Stale,
			c.Governed,
		)
		if kind.Restarts {
			step += fmt.Sprintf(": kubectl -n %s rollout restart %s", r.Namespace, workload)
		}
		steps = append(steps, step)
	}
	steps = append(steps, r.Status.Remedies...)
	if !r.Sized() && !r.is(v1alpha1.ConditionReady) {
		steps = append(steps, r.unready())
	}
	if r.Stalled {
		steps = append(steps, "A container is stalled: "+r.condition(v1alpha1.ConditionMemoryStalled).Message)
	}
	if r.Killed && len(steps) == 0 {
		steps = append(steps, "The recommended size is unchanged; watch for further kills: "+
			r.condition(v1alpha1.ConditionOOMObserved).Message)
	}
	return steps
}

// because returns a statement with the reason and message of a condition.
func (r *Row) because(statement, kind string) string {
	c := r.condition(kind)
	return fmt.Sprintf("%s (%s): %s", statement, c.Reason, c.Message)
}

// unready explains a missing recommended size.
func (r *Row) unready() string {
	s := r.Status
	if r.condition(v1alpha1.ConditionReady).Status == "" {
		return "memfit has not evaluated the workload yet: wait a minute, or check memfit: kubectl -n memfit-system get pods"
	}
	after := ""
	if s.OOMKills > 0 {
		after = " after " + format.Count(s.OOMKills, "OOM kill")
	}
	text := strings.TrimSuffix(r.because("No recommendation yet"+after, v1alpha1.ConditionReady), ".")
	if after == "" || len(s.Remedies) > 0 || len(s.RecentOOMKills) == 0 {
		return text
	}
	return text + ". " + r.untilSized(&s.RecentOOMKills[0])
}

// untilSized returns what to do about a container that is OOM-killed and has no recommended size.
func (r *Row) untilSized(last *v1alpha1.OOMKillRecord) string {
	sized := slices.ContainsFunc(r.Status.Containers, func(c v1alpha1.ContainerRecommendation) bool {
		return c.Container == last.Container
	})
	if !sized {
		return fmt.Sprintf("The last kill was in container %s, which memfit does not size: list it in spec.containers of "+
			"%s %s, or raise its limit yourself", last.Container, r.Status.Profile.Kind, r.Status.Profile.Name)
	}
	return fmt.Sprintf("Until then, raise the limit of container %s (%s) yourself; to see what filled it: kubectl memfit "+
		"why -n %s pod/%s", last.Container, Amount(last.Limit), r.Namespace, last.Pod)
}

// Called returns the kind and the name of a workload for users: "Deployment" and "web", "DaemonSet" and
// "log [m5.large]" for a node class, or "tekton" and "build/unit" for a pipeline step.
func (r *Row) Called() (kind, name string) {
	id := r.Status.Identity
	if id == nil {
		return r.Kind, r.Name
	}
	if class := identity.NodeClassOf(id.Platform, id.Values); class != "" {
		return r.Kind, identity.OnNodes(r.Name, class)
	}
	return id.Platform, strings.Join(id.Values, "/")
}

// resource returns a workload in the form of kubectl -o name: "deployment.apps/web".
func (r *Row) resource() string {
	return cmp.Or(identityTitle(r.Status), workloadkind.Resource(r.APIVersion, r.Kind, r.Name))
}

func (r *Row) typed() string { return Typed(r.Recommendation, r.Status) }
