// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/runtimes"
)

// target is a container that memfit manages.
type target struct {
	container *corev1.Container
	policy    profile.Container
	found     *v1alpha1.FoundRuntime
	// volumesHold is what its memory-backed volumes may hold, see [VolumesHold].
	volumesHold memory.Bytes
	// once is a plain init container, which is managed only because the profile names it.
	once bool
	// before is what an earlier plan wrote into the container; nil: nothing. work is the container without it, on which
	// the plan is drawn up, and program what it runs.
	before  *containerRecord
	work    *working
	program Program
}

// targets are the app containers, native sidecars, and the plain init containers that the profile names, in the order
// of the pod. Ephemeral containers are never among them: they have no resources and arrive by another road.
func targets(in Input) []target {
	pod := in.Pod
	out := make([]target, 0, len(pod.Spec.Containers)+len(pod.Spec.InitContainers))
	for c, init := range constraints.Containers(&pod.Spec) {
		t := target{container: c, policy: in.Profile.Container(c.Name, pod.Annotations)}
		if f := in.Observed[c.Name].Found; f != nil && f.Type != "" && f.Type != v1alpha1.RuntimeAuto && !t.policy.Sidecar {
			t.found = f // not of a sidecar: the settings of its runtime are the business of the tool that it belongs to
		}
		t.once = init && !constraints.Sidecar(c)
		t.volumesHold = VolumesHold(pod, c)
		if !t.policy.Managed || t.once && !t.policy.Listed {
			continue
		}
		t.before = in.before.of(c.Name)
		t.work = takeBack(c, t.before)
		t.program = Program{ID: t.fingerprint(pod.Name, in.PerRun), Owner: ownerBefore(c, t.before)}
		out = append(out, t)
	}
	return out
}

// identity is what memfit takes a container to run.
type identity struct {
	runtime *runtimes.Runtime
	// certain: declared, found in running replicas, or the command is that runtime's own program. Only then may a setting
	// go in that another runtime or version could refuse. An image's name never makes it certain.
	certain bool
	// source is how it is known; empty: unknown.
	source v1alpha1.RuntimeSource
	// spec has version, variant and C library, as far as they are known.
	spec v1alpha1.RuntimeSpec
	// evidence is how it is known: "declared by the profile".
	evidence string
}

// unmanaged is what is known of a container that the profile does not manage.
var unmanaged = identity{runtime: runtimes.Lookup(string(v1alpha1.RuntimeAuto)), evidence: "memfit does not manage it"}

// String is the identity with its evidence: "Node.js 20 (declared by the profile)".
func (id identity) String() string {
	if !id.certain {
		return "unknown (" + id.evidence + ")"
	}
	return title(id.runtime, id.spec) + " (" + id.evidence + ")"
}

// identify takes the declared runtime, else the one whose program the command names, else the one that running replicas
// were found to run, else none.
func identify(t target) identity { return identifyByFound(t, identifyBySpec(t)) }

// identifyBySpec goes by the profile and the pod alone.
func identifyBySpec(t target) identity {
	if spec := t.policy.Runtime; spec.Type != v1alpha1.RuntimeAuto && spec.Type != "" {
		return identity{
			runtime: runtimes.Lookup(string(spec.Type)), certain: true, source: v1alpha1.RuntimeDeclared,
			spec:     spec,
			evidence: "declared by " + t.policy.RuntimeDeclaredBy,
		}
	}
	if name := program(t.container.Command, t.container.Args); name != "" {
		if r := runtimes.ByCommand(name); r != nil {
			return identity{
				runtime: r, certain: true, source: v1alpha1.RuntimeFromCommand,
				spec:     v1alpha1.RuntimeSpec{Libc: t.policy.Runtime.Libc},
				evidence: "the command is " + short(path.Base(name)),
			}
		}
	}
	return identity{
		runtime:  runtimes.Lookup(string(v1alpha1.RuntimeAuto)),
		spec:     v1alpha1.RuntimeSpec{Libc: t.policy.Runtime.Libc},
		evidence: "not declared, and the command does not show it; set runtime.type",
	}
}

// title is what people call a declared runtime: "Java OpenJ9 17".
func title(r *runtimes.Runtime, spec v1alpha1.RuntimeSpec) string {
	if spec.Variant == "" && spec.Version == "" {
		return r.Title
	}
	return strings.Join(strings.Fields(r.Title+" "+string(spec.Variant)+" "+spec.Version), " ")
}

// Programs that a platform puts before that of each step; they pass signals and the exit code on.
const (
	argoExecutor     = "/var/run/argo/argoexec" // argoproj/argo-workflows:workflow/controller/workflowpod.go
	tektonEntrypoint = "/tekton/bin/entrypoint" // tektoncd/pipeline:pkg/pod/entrypoint.go
)

// program is the program that command starts, looking through the small init programs that only pass signals on and
// through those of platforms; empty when it is unknown. A shell's script is not inspected: what it starts in the end is
// not certain. Otherwise args alone prove nothing, because the image's entrypoint decides what they mean.
func program(command, args []string) string {
	if len(command) > 0 {
		switch command[0] {
		case argoExecutor: // argoexec emissary --loglevel info -- node server.js
			command = following(command, "--")
		case tektonEntrypoint: // entrypoint -wait_file ready -entrypoint node -- server.js
			command = following(args, "-entrypoint")
		}
	}
	for len(command) > 0 {
		switch path.Base(command[0]) {
		case "tini", "tini-static", "dumb-init", "docker-init", "catatonit":
			command = afterOptions(command[1:])
		case "env":
			command = command[1:]
			for len(command) > 0 && strings.Contains(command[0], "=") {
				command = command[1:]
			}
		default:
			return command[0]
		}
	}
	return ""
}

// following are the words behind the first mark; none: it is missing.
func following(words []string, mark string) []string {
	i := slices.Index(words, mark)
	if i < 0 {
		return nil
	}
	return words[i+1:]
}

// afterOptions skips "--" and options known to take no value; any other option makes the rest uncertain.
func afterOptions(words []string) []string {
	for len(words) > 0 {
		switch words[0] {
		case "--":
			return words[1:]
		case "-g", "-s", "-v", "-w", "--single-child", "--verbose":
			words = words[1:]
		default:
			if strings.HasPrefix(words[0], "-") {
				return nil
			}
			return words
		}
	}
	return nil
}

// container finds a container or init container by name.
func container(pod *corev1.Pod, name string) *corev1.Container {
	for c := range constraints.Containers(&pod.Spec) {
		if c.Name == name {
			return c
		}
	}
	return nil
}
