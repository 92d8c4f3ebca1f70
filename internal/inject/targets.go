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
	container   *corev1.Container
	policy      profile.Container
	found       *v1alpha1.FoundRuntime
	volumesHold memory.Bytes     // the capacity of its memory-backed volumes, see [VolumesCapacity]
	whole       memory.Size      // the pod-level size (spec.resources); zero: none
	once        bool             // a plain init container, which is managed only because the profile names it
	before      *containerRecord // the record of an earlier plan; nil: none
	work        *working         // the container without the earlier plan's changes; this plan changes it
	program     Program
}

// targets returns the managed containers in the order of the pod: app containers, native sidecars, and the plain init
// containers that the profile names. Ephemeral containers have no resources and are excluded.
func targets(in Input) []target {
	pod := in.Pod
	out := make([]target, 0, len(pod.Spec.Containers)+len(pod.Spec.InitContainers))
	for c, init := range constraints.Containers(&pod.Spec) {
		t := target{container: c, policy: in.Profile.Container(c.Name, pod.Annotations)}
		if f := in.Observed[c.Name].Found; f != nil && f.Type != "" && f.Type != v1alpha1.RuntimeAuto && !t.policy.Sidecar {
			t.found = f // not for well-known sidecars: memfit leaves their runtime to the tools that inject them
		}
		t.once = init && !constraints.Sidecar(c)
		t.volumesHold = VolumesCapacity(pod, c)
		t.whole = constraints.WholeSize(pod)
		if !t.policy.Managed || t.once && !t.policy.Listed {
			continue
		}
		t.before = in.before.of(c.Name)
		t.work = revertChanges(c, t.before)
		t.program = Program{ID: t.fingerprint(pod.Name, in.PerRun), Owner: ownerBefore(c, t.before)}
		out = append(out, t)
	}
	return out
}

// identity is the assumed runtime of a container.
type identity struct {
	runtime *runtimes.Runtime
	// certain is true if the runtime is declared, found in running replicas, or the command is that runtime's own program.
	// Only then memfit sets what another runtime or version could refuse. An image's name never makes it certain.
	certain  bool
	source   v1alpha1.RuntimeSource // the source of the runtime; empty: unknown
	spec     v1alpha1.RuntimeSpec   // the known version, variant and C library
	evidence string                 // the source in words: "declared by the profile"
}

// unmanaged is the identity of a container that the profile does not manage.
var unmanaged = identity{runtime: runtimes.Lookup(string(v1alpha1.RuntimeAuto)), evidence: "memfit does not manage it"}

// String returns the identity with its evidence: "Node.js 20 (declared by the profile)".
func (id identity) String() string {
	if !id.certain {
		return "unknown (" + id.evidence + ")"
	}
	return title(id.runtime, id.spec) + " (" + id.evidence + ")"
}

// identify returns the declared runtime, otherwise the command's, the one detected in replicas, or an unknown one.
func identify(t target) identity { return identifyByFound(t, identifyBySpec(t)) }

// identifyBySpec uses only the profile and the pod.
func identifyBySpec(t target) identity {
	declared := t.policy.Runtime
	if declared.Type != v1alpha1.RuntimeAuto && declared.Type != "" {
		return identity{
			runtime: runtimes.Lookup(string(declared.Type)), certain: true, source: v1alpha1.RuntimeDeclared, spec: declared,
			evidence: "declared by " + t.policy.RuntimeDeclaredBy,
		}
	}
	libc := v1alpha1.RuntimeSpec{Libc: declared.Libc}
	name := program(t.container.Command, t.container.Args)
	if r := runtimes.ByCommand(name); r != nil {
		return identity{
			runtime: r, certain: true, source: v1alpha1.RuntimeFromCommand, spec: libc,
			evidence: "the command is " + shorten(path.Base(name)),
		}
	}
	return identity{
		runtime: runtimes.Lookup(string(v1alpha1.RuntimeAuto)), spec: libc,
		evidence: "not declared, and the command does not show it; set runtime.type",
	}
}

// title returns the common name of a declared runtime: "Java OpenJ9 17".
func title(r *runtimes.Runtime, spec v1alpha1.RuntimeSpec) string {
	if spec.Variant == "" && spec.Version == "" {
		return r.Title
	}
	return strings.Join(strings.Fields(r.Title+" "+string(spec.Variant)+" "+spec.Version), " ")
}

// Programs that platforms start in front of each step; they forward signals and the exit code.
const (
	argoExecutor     = "/var/run/argo/argoexec" // argoproj/argo-workflows:workflow/controller/workflowpod.go
	tektonEntrypoint = "/tekton/bin/entrypoint" // tektoncd/pipeline:pkg/pod/entrypoint.go
)

// program returns the program that command starts, after init programs and platforms' wrappers; empty: unknown. It does
// not parse shell scripts. Without a command it is unknown, because the image's entrypoint interprets args.
func program(command, args []string) string {
	if len(command) > 0 {
		switch command[0] {
		case argoExecutor: // argoexec emissary --loglevel info -- node server.js
			command = wordsAfter(command, "--")
		case tektonEntrypoint: // entrypoint -wait_file ready -entrypoint node -- server.js
			command = wordsAfter(args, "-entrypoint")
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

// wordsAfter returns the words after the first mark; nil if mark is missing.
func wordsAfter(words []string, mark string) []string {
	i := slices.Index(words, mark)
	if i < 0 {
		return nil
	}
	return words[i+1:]
}

// afterOptions returns the words after "--" and options known to take no value; nil after any other option.
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
