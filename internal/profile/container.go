// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/runtimes"
)

// Container is the effective policy for one container: the profile, overridden by its containers entry, with defaults.
type Container struct {
	Managed bool                 // false if the entry has mode: Ignored
	Listed  bool                 // an entry has the container's name (not "*"); opts plain init containers in
	Sidecar bool                 // another tool adds the container to pods, and no entry names it
	Runtime v1alpha1.RuntimeSpec // the declared runtime; Type is Auto without a declaration
	// RuntimeDeclaredBy is the source of the declaration: "the profile", "annotation memfit.dev/runtime"; empty for Auto.
	RuntimeDeclaredBy string
	Tuning            v1alpha1.TuningSpec // merged field by field; mode, conflictPolicy and resizePolicy are never empty
	// Sizing has the container's own bounds and all defaults of the API.
	Sizing v1alpha1.SizingSpec
	// Notes describe invalid annotations of the pod.
	Notes []string
}

// Container returns the policy for the named container of a pod with these annotations. An entry of spec.containers
// with that name has precedence over "*". The entry overrides the profile's runtime and, field by field, its tuning and
// bounds. Declarations for all containers do not apply to well-known sidecars of other tools.
func (n *Profile) Container(name string, podAnnotations map[string]string) Container {
	entry, listed := n.entry(name)
	effective := n.policyFor(entry)
	c := Container{
		Managed: entry == nil || entry.Mode != "Ignored", Listed: listed,
		Runtime: n.Spec.Runtime, Tuning: effective.tuning, Sizing: effective.sizing,
	}
	if entry != nil && entry.Runtime != nil {
		c.Runtime = *entry.Runtime
	}
	if c.Sidecar = sidecars[name] && !listed; c.Sidecar {
		c.Runtime, podAnnotations = v1alpha1.RuntimeSpec{}, nil
		c.Tuning = v1alpha1.TuningSpec{
			Mode: c.Tuning.Mode, ConflictPolicy: v1alpha1.KeepUser, ResizePolicy: c.Tuning.ResizePolicy,
		}
	}
	c.declare(podAnnotations)
	return c
}

// OnlyMeasures reports whether the profile changes no running or new pod.
func (n *Profile) OnlyMeasures() bool {
	all := n.policyFor(nil)
	tuned := all.tuning.Mode != v1alpha1.TuningDisabled
	for i := range n.Spec.Containers {
		tuned = tuned || n.policyFor(&n.Spec.Containers[i]).tuning.Mode != v1alpha1.TuningDisabled
	}
	return !tuned && n.Spec.Drift.Action != v1alpha1.DriftRestart &&
		(all.sizing.Mode == v1alpha1.SizingRecommend || all.sizing.Mode == v1alpha1.SizingDisabled)
}

// sidecars are containers that other webhooks add to pods. A profile is about the application: its runtime and tuning
// do not apply to these containers, unless an entry names them.
var sidecars = map[string]bool{
	"istio-proxy": true, "istio-init": true, "istio-validation": true, "linkerd-proxy": true, "linkerd-init": true,
	"kuma-sidecar": true, "consul-dataplane": true, "daprd": true, "vault-agent": true, "vault-agent-init": true,
	"otc-container": true, "jaeger-agent": true, "datadog-agent-injected": true, "gke-gcsfuse-sidecar": true,
}

// Sidecars returns the sorted names of containers that other tools add to pods.
func Sidecars() []string { return slices.Sorted(maps.Keys(sidecars)) }

func (n *Profile) entry(name string) (entry *v1alpha1.ContainerPolicy, listed bool) {
	for i := range n.Spec.Containers {
		switch e := &n.Spec.Containers[i]; e.Name {
		case name:
			return e, true
		case "*":
			entry = e
		}
	}
	return entry, false
}

// declare sets the declared runtime. The annotation applies only if the profile's runtime.type is Auto.
func (c *Container) declare(podAnnotations map[string]string) {
	c.Runtime.Libc = cmp.Or(c.Runtime.Libc, v1alpha1.LibcAuto)
	if c.Runtime.Type != "" && c.Runtime.Type != v1alpha1.RuntimeAuto {
		c.RuntimeDeclaredBy = "the profile"
		return
	}
	c.Runtime.Type = v1alpha1.RuntimeAuto
	text := podAnnotations[v1alpha1.RuntimeAnnotation]
	if strings.TrimSpace(text) == "" {
		return
	}
	runtime, err := ParseRuntime(text)
	if err != nil {
		c.Notes = append(c.Notes, err.Error())
		return
	}
	c.Runtime.Type = runtime.Type
	c.Runtime.Version = cmp.Or(runtime.Version, c.Runtime.Version)
	if runtime.Type != v1alpha1.RuntimeAuto {
		c.RuntimeDeclaredBy = "annotation " + v1alpha1.RuntimeAnnotation
	}
}

// versionPattern is the pattern of RuntimeSpec.version.
var versionPattern = regexp.MustCompile(`^[0-9]+(\.[0-9]+){0,3}([+_u][0-9]+)?$`)

// ParseRuntime reads the memfit.dev/runtime annotation: a runtime type, in any case, and a version ("jvm:17.0.9").
func ParseRuntime(text string) (v1alpha1.RuntimeSpec, error) {
	name, version, hasVersion := strings.Cut(strings.TrimSpace(text), ":")
	version = strings.TrimSpace(version)
	if hasVersion && (len(version) > 32 || !versionPattern.MatchString(version)) {
		return v1alpha1.RuntimeSpec{}, fmt.Errorf("annotation %s is %s, but %s is not a version: write numbers and dots, "+
			"for example %q", v1alpha1.RuntimeAnnotation, quote.Name(text), quote.Name(version), "JVM:17.0.9")
	}
	var names []string
	for _, r := range runtimes.All() {
		if strings.EqualFold(r.Name, strings.TrimSpace(name)) {
			return v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeType(r.Name), Version: version}, nil
		}
		names = append(names, r.Name)
	}
	return v1alpha1.RuntimeSpec{}, fmt.Errorf("annotation %s is %s, which is not a runtime that memfit knows: write one "+
		"of %s", v1alpha1.RuntimeAnnotation, quote.Name(text), strings.Join(names, ", "))
}
