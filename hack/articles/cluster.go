// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Cluster is accessed through kubectl, so that a user can repeat each command.
type Cluster struct {
	Kubectl   string
	Namespace string
	Node      string // "": the lab's default node; cgroup2: the node that make lab-up NODE=cgroup2 adds
}

// commandTimeout bounds a single command; the longest is a request that is a whole step.
const commandTimeout = stepTimeout

func (c *Cluster) run(ctx context.Context, in string, args ...string) (string, error) {
	ctx, cancel := within(ctx, commandTimeout, "kubectl "+strings.Join(args, " "))
	defer cancel()
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, c.Kubectl, append([]string{"-n", c.Namespace}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil { // the context killed it, for this cause
			err = context.Cause(ctx)
		}
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// within returns a context whose timeout error names what was awaited.
func within(ctx context.Context, most time.Duration, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, most, fmt.Errorf("%s: not within %s", what, most))
}

// plugin runs a verb of kubectl memfit. kubectl wants flags after the name of a plugin.
func (c *Cluster) plugin(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := within(ctx, commandTimeout, "kubectl memfit "+strings.Join(args, " "))
	defer cancel()
	var out strings.Builder
	cmd := exec.CommandContext(ctx, "kubectl-memfit", append(args, "-n", c.Namespace)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String(), err
}

//go:embed manifests.yaml.tmpl
var manifestsText string

var manifests = template.Must(template.New("story").Parse(manifestsText))

func render(s Story, node string) (string, error) {
	commands := map[bool]string{}
	for build, command := range map[bool][]string{false: s.Command, true: s.Build} {
		if command == nil {
			continue
		}
		text, err := json.Marshal(command)
		if err != nil {
			return "", err
		}
		commands[build] = string(text)
	}
	var out strings.Builder
	err := manifests.Execute(&out, struct {
		Story                Story
		Command, Build, Node string
	}{s, commands[false], commands[true], node})
	return out.String(), err
}

// ready reports whether a pod's only container is ready.
func ready(p *corev1.Pod) bool {
	return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].Ready
}

// restarts returns the restart count of a pod's only container.
func restarts(p *corev1.Pod) int32 {
	if len(p.Status.ContainerStatuses) == 0 {
		return 0
	}
	return p.Status.ContainerStatuses[0].RestartCount
}

// ended returns how a pod's only container ended; "": it did not.
func ended(p *corev1.Pod) string {
	if len(p.Status.ContainerStatuses) == 0 {
		return ""
	}
	s := p.Status.ContainerStatuses[0]
	if t := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated); t != nil {
		return fmt.Sprintf("%s, exit %d", t.Reason, t.ExitCode)
	}
	return ""
}

// get decodes the output of `kubectl get`.
func (c *Cluster) get(ctx context.Context, into any, args ...string) error {
	text, err := c.run(ctx, "", append([]string{"get", "-o", "json"}, args...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

func (c *Cluster) pods(ctx context.Context, arm string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.get(ctx, &list, "pods", "-l", "app="+arm, "--sort-by=.metadata.name")
	return list.Items, err
}

// query sends a request to the program in a pod, through the API server, and returns the numbers of its answer.
func (c *Cluster) query(ctx context.Context, pod, path string) (map[string]float64, error) {
	text, err := c.run(ctx, "", "get", "--raw", "/api/v1/namespaces/"+c.Namespace+"/pods/"+pod+":8080/proxy/"+path)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return nil, fmt.Errorf("%s of %s answers %q: %w", path, pod, text, err)
	}
	return values, nil
}

// inspect asks memfit's agent to inspect a pod now.
func (c *Cluster) inspect(ctx context.Context, pod string, now time.Time) error {
	_, err := c.run(ctx, "", "annotate", "pod", pod, "--overwrite",
		v1alpha1.InspectAnnotation+"="+now.UTC().Format(time.RFC3339Nano))
	return err
}

// snapshot reads what memfit's agent wrote about a pod's only container.
func (c *Cluster) snapshot(ctx context.Context, pod string) (*v1alpha1.ContainerSnapshot, error) {
	var s v1alpha1.MemorySnapshot
	if err := c.get(ctx, &s, "memorysnapshots", pod); err != nil {
		return nil, err
	}
	return onlyContainer(&s)
}

// recommendation returns the request and limit that memfit recommends for a Deployment's only container; 0: none.
func (c *Cluster) recommendation(ctx context.Context, deployment string) (request, limit float64, err error) {
	var r v1alpha1.MemoryRecommendation
	if err := c.get(ctx, &r, "memoryrecommendation", "deployment-"+deployment); err != nil {
		return 0, 0, err
	}
	if len(r.Status.Containers) == 0 || r.Status.Containers[0].Recommended == nil {
		return 0, 0, fmt.Errorf("memfit has no recommendation for %s yet", deployment)
	}
	size := r.Status.Containers[0].Recommended
	return bytes(size.Request), bytes(size.Limit), nil
}

var errNotInspected = errors.New("memfit's agent has not inspected the container")

// onlyContainer returns a snapshot's only container, with Memory; errNotInspected where the agent has not inspected it.
func onlyContainer(s *v1alpha1.MemorySnapshot) (*v1alpha1.ContainerSnapshot, error) {
	if len(s.Status.Containers) != 1 {
		return nil, errNotInspected
	}
	c := &s.Status.Containers[0]
	if c.Memory == nil {
		return nil, fmt.Errorf("%w: %s", errNotInspected, c.InspectionMessage)
	}
	return c, nil
}
