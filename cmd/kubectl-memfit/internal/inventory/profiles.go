// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/runtimes"
	"github.com/memfit/memfit/internal/workloadkind"
)

// File is a file with a profile.
type File struct {
	Path string // relative to the folder of --write: "shop/nodejs.yaml"
	Text string
}

// Profiles returns profiles for the workloads without one: a profile for each namespace and runtime, and a separate
// profile for each workload with several runtimes. The profiles only recommend until a user edits them.
func Profiles(all []Workload) (files []File) {
	groups := map[string]*group{} // by path
	for _, containers := range ungoverned(all) {
		w := containers[0]
		g := group{namespace: w.Namespace, name: w.Workload, runtime: w.Runtime.Type}
		if slices.ContainsFunc(containers, func(c *Workload) bool { return c.Runtime.Type != g.runtime }) {
			g.runtime = ""
		} else {
			g.name = strings.ToLower(g.runtime)
		}
		if other := groups[g.path()]; other != nil && (other.runtime != g.runtime || g.runtime == "") {
			g.name = strings.ToLower(w.Kind) + "-" + g.name // a runtime or another workload has the name
		}
		if groups[g.path()] == nil {
			groups[g.path()] = &g
		}
		shared := groups[g.path()]
		shared.workloads = append(shared.workloads, containers)
	}
	for _, at := range slices.Sorted(maps.Keys(groups)) {
		files = append(files, File{Path: at, Text: groups[at].text()})
	}
	return files
}

// group is one profile and its workloads.
type group struct {
	namespace, name string
	runtime         string        // empty: the containers have different runtimes
	workloads       [][]*Workload // the containers of each workload
}

func (g *group) path() string { return path.Join(g.namespace, g.name+".yaml") }

// kindName matches kinds. The pod's creator controls the owner's kind and name, which are used in a path and a command.
var kindName = regexp.MustCompile(`^[A-Za-z]{1,63}$`)

// ungoverned returns the containers with a known runtime of each workload without a profile. It omits memfit, known
// sidecars, and bare pods: these need no profile, because only new pods get settings.
func ungoverned(all []Workload) (out [][]*Workload) {
	var left []*Workload
	for i := range all {
		w := &all[i]
		omitted := w.own || w.Kind == workloadkind.Pod().Name || slices.Contains(profile.Sidecars(), w.Name)
		valid := kindName.MatchString(w.Kind) && len(validation.IsDNS1123Subdomain(w.Workload)) == 0
		if w.Profile == "" && declarable(w.Runtime.Type) && !omitted && valid {
			left = append(left, w)
		}
	}
	byOwner := func(a, b *Workload) int {
		return cmp.Or(
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Workload, b.Workload),
		)
	}
	slices.SortFunc(left, func(a, b *Workload) int { return cmp.Or(byOwner(a, b), strings.Compare(a.Name, b.Name)) })
	for _, w := range left {
		if last := len(out) - 1; last >= 0 && byOwner(out[last][0], w) == 0 {
			out[last] = append(out[last], w)
		} else {
			out = append(out, []*Workload{w})
		}
	}
	return out
}

// declarable reports whether a profile can declare this type.
func declarable(runtime string) bool {
	return runtime != "" && runtime != string(v1alpha1.RuntimeAuto) && runtimes.Lookup(runtime).Name == runtime
}

func (g *group) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# kubectl memfit scan --write, namespace %s. This profile only recommends: pods get no settings "+
		"or sizes.\n# Check suggested runtimes before you apply it.\n", g.namespace)
	for _, w := range g.workloads {
		for _, c := range w {
			how := "suggested: "
			if c.Runtime.From == FromAgent {
				how = "found by the agent: "
			}
			fmt.Fprintf(&b, "# %s, container %s: %s (%s%s)\n", c.typed(), quote.Plain(c.Name),
				quote.Plain(strings.TrimSpace(c.Runtime.Title+" "+c.Runtime.Version)), how,
				quote.Plain(strings.Join(c.Runtime.Evidence, "; ")))
		}
		fmt.Fprintf(&b, "#   kubectl -n %s annotate %s %s %s=%s\n", g.namespace, strings.ToLower(w[0].Kind), w[0].Workload,
			v1alpha1.ProfileAnnotation, g.name)
	}
	fmt.Fprintf(&b, "apiVersion: %s\nkind: MemoryProfile\nmetadata: {name: %q, namespace: %q}\nspec:\n",
		v1alpha1.GroupVersion, g.name, g.namespace)
	if g.runtime != "" {
		fmt.Fprintf(&b, "  runtime: {type: %s}\n", g.runtime)
	} else {
		b.WriteString("  containers:\n")
		for _, c := range g.workloads[0] {
			fmt.Fprintf(&b, "  - {name: %q, runtime: {type: %s}}\n", c.Name, c.Runtime.Type)
		}
	}
	b.WriteString("  # DryRun only reports the settings for new pods. Remove this line to set them, and sizes if " +
		"sizing.mode allows it.\n  tuning: {mode: DryRun}\n  sizing: {mode: Recommend}\n")
	return b.String()
}
