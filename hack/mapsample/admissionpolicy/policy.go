// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpolicy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/runtimes"
)

// Objects replace memfit's webhook for one profile.
type Objects struct {
	Policy  *admissionregistrationv1.MutatingAdmissionPolicy
	Binding *admissionregistrationv1.MutatingAdmissionPolicyBinding
	// LeftOut describes what the profile specifies and a policy cannot do.
	LeftOut []string
}

// For returns profile n as a policy and its binding, both named memfit-NAMESPACE-NAME. It fails when CEL can express no
// setting of the profile, or the profile governs no pod.
func For(n *profile.Profile) (Objects, error) {
	if n.HoldsDefaults() {
		return Objects{}, fmt.Errorf("%s has role: Defaults and governs no pod, so it has no policy", n)
	}
	var out Objects
	var rules []rule
	for _, container := range containers(n) {
		found, left := rulesFor(n, container)
		rules = append(rules, found...)
		out.LeftOut = append(out.LeftOut, left...)
	}
	if len(rules) == 0 {
		return out, fmt.Errorf(
			"%s sets nothing that a MutatingAdmissionPolicy can set: %s", n, strings.Join(out.LeftOut, "; "),
		)
	}
	out.LeftOut = append(out.LeftOut, leftOut(n)...)
	name := strings.Trim("memfit-"+n.Namespace+"-"+n.Ref.Name, "-")
	if n.Namespace == "" {
		name = "memfit-" + n.Ref.Name
	}
	out.Policy = policy(n, name, rules)
	out.Binding = &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ours},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	return out, nil
}

var ours = map[string]string{"app.kubernetes.io/name": "memfit", "app.kubernetes.io/part-of": "memfit"}

// chosen selects the containers of a rule: one by name, or all that have no entry of their own.
type chosen struct {
	name   string   // empty: all except others
	others []string // names with an entry of their own, and sidecars of other tools
}

// sample returns the container name for which internal/inject computes the values.
func (c chosen) sample() string {
	if c.name != "" {
		return c.name
	}
	return "memfit-any-other-container" // longer than usual container names, but valid
}

func containers(n *profile.Profile) []chosen {
	var all []chosen
	var names []string
	for _, entry := range n.Spec.Containers {
		if entry.Name != "*" {
			all = append(all, chosen{name: entry.Name})
			names = append(names, entry.Name)
		}
	}
	for _, name := range profile.Sidecars() { // the webhook's settings for them are not worth a rule
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return append(all, chosen{others: names})
}

// rulesFor returns a rule for each variable that is set on such a container.
func rulesFor(n *profile.Profile, c chosen) (rules []rule, leftOut []string) {
	policy := n.Container(c.sample(), nil)
	if !policy.Managed {
		return nil, nil
	}
	if mode := policy.Tuning.Mode; mode != v1alpha1.TuningInject {
		return nil, []string{fmt.Sprintf("tuning.mode is %s", mode)}
	}
	runtime := runtimes.Lookup(string(policy.Runtime.Type))
	for _, env := range variables(runtime) {
		f, err := fit(func(limit memory.Bytes) (string, bool) { return planned(n, c, limit, env) })
		switch {
		case err != nil:
			leftOut = append(leftOut, fmt.Sprintf("%s: %v", env, err))
		case f != nil:
			rules = append(rules, rule{
				env: env, containers: c, formula: f, runtime: runtime, divided: policy.Tuning.Processes != nil,
				version: runtimes.ParseVersion(policy.Runtime.Version),
			})
		}
	}
	return rules, leftOut
}

// variables returns the names of the environment variables that a runtime's knobs set, each once.
func variables(r *runtimes.Runtime) []string {
	names := map[string]bool{}
	for i := range r.Knobs {
		names[r.Knobs[i].Env] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// planned returns the value that memfit's webhook would set a variable to, in a pod without other settings.
func planned(n *profile.Profile, c chosen, limit memory.Bytes, env string) (string, bool) {
	container := corev1.Container{Name: c.sample()}
	if limit > 0 {
		container.Resources.Limits = corev1.ResourceList{
			corev1.ResourceMemory: *resource.NewQuantity(int64(limit), resource.BinarySI),
		}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	for _, v := range inject.MakePlan(inject.Input{Pod: pod, Profile: n}).Edit(container.Name).Env {
		if v.Name == env {
			return v.Value, true
		}
	}
	return "", false
}

// leftOut describes what a profile specifies besides settings.
func leftOut(n *profile.Profile) []string {
	var left []string
	if mode := n.Spec.Sizing.Mode; mode.SizesNewPods() {
		left = append(left, fmt.Sprintf("sizing.mode %s: a policy knows no recommendations", mode))
	}
	if n.Spec.Tuning.ConflictPolicy == v1alpha1.Replace {
		left = append(left, "conflictPolicy Replace: a policy only sets what is absent")
	}
	return left
}
