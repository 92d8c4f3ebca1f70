// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package labnode finds the additional nodes of the lab (hack/lab/README.md) and their variants, and places the pods of
// tests on them.
package labnode

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Label is the label and the taint of the lab's additional nodes; Cgroup2 is its value for the node with cgroup v2.
const (
	Label   = "memfit.dev/lab-node"
	Cgroup2 = "cgroup2"
)

// Place places pods on the node with that value of Label.
func Place(p *corev1.PodSpec, node string) {
	p.NodeSelector = map[string]string{Label: node}
	p.Tolerations = []corev1.Toleration{{Key: Label, Operator: corev1.TolerationOpEqual, Value: node}}
}

// Kubelet is the part of a kubelet's configuration that distinguishes the variants of a node.
type Kubelet struct {
	SingleProcessOOMKill bool            `json:"singleProcessOOMKill"`
	FeatureGates         map[string]bool `json:"featureGates"`
	MemorySwap           struct {
		SwapBehavior string `json:"swapBehavior"`
	} `json:"memorySwap"`
}

// Plain reports whether the node was added without NODE_WITH.
func (k Kubelet) Plain() bool { return !k.SingleProcessOOMKill && !k.Swaps() && !k.Throttles() }

// Swaps reports whether the node is the variant NODE_WITH=swap.
func (k Kubelet) Swaps() bool { return k.MemorySwap.SwapBehavior == "LimitedSwap" }

// Throttles reports whether the node is the variant NODE_WITH=memory-qos.
func (k Kubelet) Throttles() bool { return k.FeatureGates["MemoryQoS"] }

// Find returns the name and the kubelet configuration of the node with that value of Label. The name is empty if the
// cluster has none.
func Find(ctx context.Context, clients kubernetes.Interface, node string) (name string, k Kubelet, err error) {
	nodes, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: Label + "=" + node})
	if err != nil || len(nodes.Items) == 0 {
		return "", k, err
	}
	name = nodes.Items[0].Name
	raw, err := clients.CoreV1().RESTClient().Get().
		Resource("nodes").Name(name).SubResource("proxy").Suffix("configz").DoRaw(ctx)
	if err != nil {
		return "", k, fmt.Errorf("reading the kubelet configuration of node %s: %w", name, err)
	}
	var configz struct {
		KubeletConfig Kubelet `json:"kubeletconfig"`
	}
	err = json.Unmarshal(raw, &configz)
	return name, configz.KubeletConfig, err
}
