// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// Status is what `lab status` tells.
type Status struct {
	Processes  []ProcessStatus `json:"processes"`
	Healthy    bool            `json:"healthy"`
	Problem    string          `json:"problem,omitempty"`    // why it is not healthy
	Kubernetes string          `json:"kubernetes,omitempty"` // the version
	APIServer  string          `json:"apiServer,omitempty"`
	Kubeconfig string          `json:"kubeconfig,omitempty"`
	Logs       string          `json:"logs,omitempty"`
}

// ProcessStatus is one daemon.
type ProcessStatus struct {
	Name    string    `json:"name"`
	PID     int       `json:"pid"`
	Running bool      `json:"running"`
	Started time.Time `json:"started"`
}

// Status looks at the lab without changing anything.
func (n *Node) Status(ctx context.Context) (Status, error) {
	records, err := n.store().List()
	if err != nil {
		return Status{}, err
	}
	s := Status{Processes: []ProcessStatus{}}
	if len(records) == 0 {
		s.Problem = "no lab is up"
		return s, nil
	}
	for _, r := range records {
		s.Processes = append(s.Processes, ProcessStatus{Name: r.Name, PID: r.PID, Running: r.Alive(), Started: r.Started})
	}
	if id, err := n.readIdentity(); err == nil {
		s.Kubernetes = id.Options.Kubernetes
	}
	s.Kubeconfig, s.Logs = n.Layout.Kubeconfig(), n.Layout.Logs()
	if a, err := newAPI(n.Layout.Kubeconfig()); err == nil {
		s.APIServer = a.url
	}
	if err := n.Healthy(ctx); err != nil {
		s.Problem = err.Error()
	} else if n.Cgroup2Asked() {
		if err := n.Cgroup2Healthy(ctx); err != nil {
			s.Problem = err.Error()
		}
	}
	s.Healthy = s.Problem == ""
	return s, nil
}

// PodIP returns the address of a running pod.
func (n *Node) PodIP(ctx context.Context, namespace, pod string) (string, error) {
	a, err := newAPI(n.Layout.Kubeconfig())
	if err != nil {
		return "", err
	}
	body, err := a.get(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/pods/"+url.PathEscape(pod))
	if err != nil {
		return "", fmt.Errorf("looking up the pod %s/%s: %w", namespace, pod, err)
	}
	var p struct {
		Status struct{ PodIP string }
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return "", fmt.Errorf("parsing the pod %s/%s: %w", namespace, pod, err)
	}
	if p.Status.PodIP == "" {
		return "", fmt.Errorf("the pod %s/%s has no address yet: wait until it runs", namespace, pod)
	}
	return p.Status.PodIP, nil
}
