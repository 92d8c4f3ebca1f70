// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/runtimes"
)

// File is a profile for Git.
type File struct {
	// Path is relative to the folder of --write: "shop/nodejs.yaml".
	Path, Text string
}

// Profiles returns a profile for each runtime of a namespace whose workloads have none, and a separate one for a
// workload with several runtimes. They only recommend: pods get settings after a user has removed a line.
func Profiles(all []Workload) []File {
	var files []File
	for _, group := range groups(all) {
		files = append(files, group.file())
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// group is what one profile is for.
type group struct {
	namespace, name string
	// runtime is empty where containers differ.
	runtime   string
	workloads []governable
}

// governable is one workload with its containers whose runtime is known.
type governable struct {
	kind, name string
	containers []*Workload
}

func groups(all []Workload) []*group {
	byName := map[[2]string]*group{}
	var out []*group
	for _, one := range ungoverned(all) {
		runtime := one.runtime()
		name := strings.ToLower(runtime)
		if runtime == "" {
			name = one.name
		}
		key := [2]string{one.containers[0].Namespace, name}
		if byName[key] != nil && byName[key].runtime != runtime { // a workload is called as a runtime's profile is
			key[1] = strings.ToLower(one.kind) + "-" + name
		}
		if byName[key] == nil {
			byName[key] = &group{namespace: key[0], name: key[1], runtime: runtime}
			out = append(out, byName[key])
		}
		byName[key].workloads = append(byName[key].workloads, one)
	}
	return out
}

// kindName is what kinds look like. Kind and name of an owner are what the pod's creator wrote, unchecked, and here
// they become a path and a command.
var kindName = regexp.MustCompile(`^[A-Za-z]{1,63}$`)

// ungoverned returns the workloads without a profile whose runtime is known or suggested, without the sidecars of
// other tools.
func ungoverned(all []Workload) (out []governable) {
	index := map[[3]string]int{}
	for i := range all {
		w := &all[i]
		// Settings come with a new pod, so that a bare one has no use for a profile.
		if w.own || w.Kind == barePod || w.Profile != "" || !declarable(w.Runtime.Type) ||
			slices.Contains(profile.Sidecars(), w.Name) {
			continue
		}
		if !kindName.MatchString(w.Kind) || len(validation.IsDNS1123Subdomain(w.Workload)) > 0 {
			continue
		}
		key := [3]string{w.Namespace, w.Kind, w.Workload}
		at, ok := index[key]
		if !ok {
			at = len(out)
			index[key] = at
			out = append(out, governable{kind: w.Kind, name: w.Workload})
		}
		out[at].containers = append(out[at].containers, w)
	}
	slices.SortFunc(out, func(a, b governable) int {
		return cmp.Or(
			strings.Compare(a.containers[0].Namespace, b.containers[0].Namespace), strings.Compare(a.kind, b.kind),
			strings.Compare(a.name, b.name),
		)
	})
	for i := range out {
		slices.SortFunc(out[i].containers, func(a, b *Workload) int { return strings.Compare(a.Name, b.Name) })
	}
	return out
}

// declarable reports whether a profile can declare this type.
func declarable(runtime string) bool {
	return runtime != "" && runtime != string(v1alpha1.RuntimeAuto) && runtimes.Lookup(runtime).Name == runtime
}

// runtime is that of all its containers; empty where they differ.
func (g *governable) runtime() string {
	for _, c := range g.containers {
		if c.Runtime.Type != g.containers[0].Runtime.Type {
			return ""
		}
	}
	return g.containers[0].Runtime.Type
}

func (g *group) file() File {
	var b strings.Builder
	fmt.Fprintf(&b, "# kubectl memfit scan --write: what runs in namespace %s. Unchanged, it gives no pod a setting or a "+
		"size.\n# Check a suggestion before you apply it.\n", g.namespace)
	for _, w := range g.workloads {
		for _, c := range w.containers {
			how := "suggested: "
			if c.Runtime.From == FromAgent {
				how = "found by the agent: "
			}
			fmt.Fprintf(&b, "# %s, container %s: %s (%s%s)\n", c.typed(), quote.Plain(c.Name),
				quote.Plain(strings.TrimSpace(c.Runtime.Title+" "+c.Runtime.Version)), how,
				quote.Plain(strings.Join(c.Runtime.Evidence, "; ")))
		}
		fmt.Fprintf(&b, "#   kubectl -n %s annotate %s %s %s=%s\n", g.namespace, strings.ToLower(w.kind), w.name,
			v1alpha1.ProfileAnnotation, g.name)
	}
	fmt.Fprintf(&b, "apiVersion: %s\nkind: MemoryProfile\nmetadata: {name: %q, namespace: %q}\nspec:\n",
		v1alpha1.GroupVersion, g.name, g.namespace)
	if g.runtime != "" {
		fmt.Fprintf(&b, "  runtime: {type: %s}\n", g.runtime)
	} else {
		b.WriteString("  containers:\n")
		for _, c := range g.workloads[0].containers {
			fmt.Fprintf(&b, "  - {name: %q, runtime: {type: %s}}\n", c.Name, c.Runtime.Type)
		}
	}
	b.WriteString("  # DryRun only reports what new pods would get. Without this line they get the settings of their " +
		"runtime, and sizes if\n  # sizing.mode allows it.\n  tuning: {mode: DryRun}\n  sizing: {mode: Recommend}\n")
	return File{Path: path.Join(g.namespace, g.name+".yaml"), Text: b.String()}
}
