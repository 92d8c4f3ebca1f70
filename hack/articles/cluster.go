// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Cluster is reached through kubectl, so that whatever is done here a person can do as well.
type Cluster struct {
	Kubectl   string
	Namespace string
	Node      string // "": the lab's own. cgroup2: the one that make lab-up NODE=cgroup2 adds.
}

// commandMost is for a single command; the longest is a request that is a whole step.
const commandMost = stepMost

func (c *Cluster) run(ctx context.Context, in string, args ...string) (string, error) {
	ctx, cancel := within(ctx, commandMost, "kubectl "+strings.Join(args, " "))
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Kubectl, append([]string{"-n", c.Namespace}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil { // it was killed, and the cause says why
			err = context.Cause(ctx)
		}
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// within bounds a wait; its error names what was waited for.
func within(ctx context.Context, most time.Duration, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, most, fmt.Errorf("%s: not within %s", what, most))
}

// plugin runs a verb of kubectl memfit. kubectl wants flags after the name of a plugin.
func (c *Cluster) plugin(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := within(ctx, commandMost, "kubectl memfit "+strings.Join(args, " "))
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "kubectl-memfit", append(args, "-n", c.Namespace)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String(), err
}

var manifests = template.Must(template.New("story").Parse(`
{{- range $name, $spec := .Story.Profiles}}
apiVersion: memfit.dev/v1alpha1
kind: MemoryProfile
metadata: {name: {{$name}}}
spec:
{{$spec}}
---
{{- end}}
{{- range .Story.Arms}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{.Name}}
  labels: {app: {{.Name}}}
  {{- with .Profile}}
  annotations: {memfit.dev/profile: {{.}}}
  {{- end}}
spec:
  replicas: {{if .Replicas}}{{.Replicas}}{{else}}1{{end}}
  selector: {matchLabels: {app: {{.Name}}}}
  strategy: {type: Recreate}
  template:
    metadata: {labels: {app: {{.Name}}}}
    spec:
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
      {{- with $.Build}}
      initContainers:
      - name: build
        image: {{$.Story.BuildImage}}
        imagePullPolicy: IfNotPresent
        command: {{.}}
        volumeMounts: [{name: app, mountPath: /app}, {name: built, mountPath: /built}]
      {{- end}}
      {{- with $.Node}}
      nodeSelector: {memfit.dev/lab-node: {{.}}}
      tolerations: [{key: memfit.dev/lab-node, value: {{.}}}]
      {{- end}}
      containers:
      - name: app
        image: {{or .Image $.Story.Image}}
        imagePullPolicy: IfNotPresent
        {{- with $.Command}}
        command: {{.}}
        {{- end}}
        env:
        {{- range $k, $v := .Env}}
        - {name: {{$k}}, value: "{{$v}}"}
        {{- end}}
        readinessProbe: {httpGet: {path: /stats, port: 8080}, periodSeconds: 2, timeoutSeconds: 20}
        resources:
          requests: {cpu: 10m, memory: 16Mi}
          limits:
            {{- if .LimitMi}}
            memory: {{.LimitMi}}Mi
            {{- end}}
            {{- with .CPU}}
            cpu: {{.}}
            {{- end}}
        volumeMounts: [{name: app, mountPath: /app}, {name: built, mountPath: /built}]
      volumes:
      - name: built
        emptyDir: {}
      - name: app
        configMap: {name: program, optional: true}
---
{{- end}}
`))

func render(s Story, node string) (string, error) {
	words := map[bool]string{}
	for build, command := range map[bool][]string{false: s.Command, true: s.Build} {
		if command == nil {
			continue
		}
		text, err := json.Marshal(command)
		if err != nil {
			return "", err
		}
		words[build] = string(text)
	}
	var out bytes.Buffer
	err := manifests.Execute(&out, struct {
		Story                Story
		Command, Build, Node string
	}{s, words[false], words[true], node})
	return out.String(), err
}

// pod is what this program reads of a pod.
type pod struct {
	Metadata struct{ Name string }
	Status   struct {
		Phase             string
		ContainerStatuses []struct {
			Ready        bool
			RestartCount int
			State        struct{ Terminated *terminated }
			LastState    struct{ Terminated *terminated }
		}
	}
}

type terminated struct {
	Reason   string
	ExitCode int
}

func (p *pod) ready() bool {
	return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].Ready
}

func (p *pod) restarts() int {
	if len(p.Status.ContainerStatuses) == 0 {
		return 0
	}
	return p.Status.ContainerStatuses[0].RestartCount
}

// ended is how its container ended; "": it did not.
func (p *pod) ended() string {
	if len(p.Status.ContainerStatuses) == 0 {
		return ""
	}
	s := p.Status.ContainerStatuses[0]
	for _, t := range []*terminated{s.State.Terminated, s.LastState.Terminated} {
		if t != nil {
			return fmt.Sprintf("%s, exit %d", t.Reason, t.ExitCode)
		}
	}
	return ""
}

func (c *Cluster) pods(ctx context.Context, arm string) ([]pod, error) {
	text, err := c.run(ctx, "", "get", "pods", "-l", "app="+arm, "--sort-by=.metadata.name", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []pod }
	return list.Items, json.Unmarshal([]byte(text), &list)
}

// ask sends a request to the program in a pod, through the API server, and returns the numbers of its answer.
func (c *Cluster) ask(ctx context.Context, pod, path string) (map[string]float64, error) {
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
		"memfit.dev/inspect="+now.UTC().Format(time.RFC3339Nano))
	return err
}

// snapshot is what memfit's agent wrote about a pod's only container, and when that was inspected.
func (c *Cluster) snapshot(ctx context.Context, pod string) (*Container, time.Time, error) {
	text, err := c.run(ctx, "", "get", "memorysnapshots", pod, "-o", "json")
	if err != nil {
		return nil, time.Time{}, err
	}
	return readSnapshot([]byte(text))
}

// asked is the request that memfit recommends for a Deployment's only container, and the limit; 0: none.
func (c *Cluster) asked(ctx context.Context, deployment string) (request, limit float64, err error) {
	text, err := c.run(ctx, "", "get", "memoryrecommendation", "deployment-"+deployment, "-o", "jsonpath="+
		"{.status.containers[0].recommended.request} {.status.containers[0].recommended.limit}")
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return 0, 0, fmt.Errorf("memfit recommends nothing for %s so far", deployment)
	}
	for i, to := range []*float64{&request, &limit}[:min(len(fields), 2)] {
		q, err := resource.ParseQuantity(fields[i])
		if err != nil {
			return 0, 0, fmt.Errorf("what memfit recommends for %s: %q: %w", deployment, text, err)
		}
		*to = q.AsApproximateFloat64()
	}
	return request, limit, nil
}

var errNoLook = errors.New("memfit's agent has not inspected the container")

func readSnapshot(text []byte) (*Container, time.Time, error) {
	var s struct {
		Status struct {
			Containers []struct {
				InspectionMessage string // why there is no Memory

				Limit   *resource.Quantity
				Peak    *resource.Quantity
				Runtime *struct{ Type, Version, Libc string }
				Memory  *struct {
					Time                  time.Time
					Resident, Unexplained resource.Quantity
					Summary               string
					Parts                 []struct {
						Name           string
						Resident, Free resource.Quantity
					}
					Savings []struct {
						Action, Method string
						Amount         resource.Quantity
						AtMost         *resource.Quantity
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, time.Time{}, fmt.Errorf("reading the snapshot: %w", err)
	}
	if len(s.Status.Containers) != 1 {
		return nil, time.Time{}, errNoLook
	}
	from := s.Status.Containers[0]
	if from.Memory == nil {
		return nil, time.Time{}, fmt.Errorf("%w: %s", errNoLook, from.InspectionMessage)
	}
	c := &Container{
		Resident: from.Memory.Resident.AsApproximateFloat64(), Unexplained: from.Memory.Unexplained.AsApproximateFloat64(),
		Helps: from.Memory.Summary,
	}
	if from.Limit != nil {
		c.Limit = from.Limit.AsApproximateFloat64()
	}
	if from.Peak != nil {
		c.Peak = from.Peak.AsApproximateFloat64()
	}
	if r := from.Runtime; r != nil {
		c.Runs = strings.TrimSpace(r.Type + " " + r.Version + " " + r.Libc)
	}
	for _, p := range from.Memory.Parts {
		c.Parts = append(c.Parts, Part{p.Name, p.Resident.AsApproximateFloat64(), p.Free.AsApproximateFloat64()})
	}
	for _, g := range from.Memory.Savings {
		gain := Gain{g.Action, g.Method, g.Amount.AsApproximateFloat64(), g.Amount.AsApproximateFloat64()}
		if g.AtMost != nil {
			gain.Most = g.AtMost.AsApproximateFloat64()
		}
		c.Gains = append(c.Gains, gain)
	}
	return c, from.Memory.Time, nil
}
