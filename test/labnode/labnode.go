// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package labnode is about nodes that the lab adds beside its own (hack/lab/README.md): it puts pods of tests on one,
// and says of which variant it is.
package labnode

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Label is the label and the taint of nodes that the lab adds; Cgroup2 is its value for the one with cgroup v2.
const (
	Label   = "memfit.dev/lab-node"
	Cgroup2 = "cgroup2"
)

// Place has pods of the template run on that node and on no other.
func Place(p *corev1.PodSpec, node string) {
	p.NodeSelector = map[string]string{Label: node}
	p.Tolerations = []corev1.Toleration{{Key: Label, Operator: corev1.TolerationOpEqual, Value: node}}
}

// Kubelet is what of a kubelet's configuration makes a variant of the node.
type Kubelet struct {
	SingleProcessOOMKill bool            `json:"singleProcessOOMKill"`
	FeatureGates         map[string]bool `json:"featureGates"`
	MemorySwap           struct {
		SwapBehavior string `json:"swapBehavior"`
	} `json:"memorySwap"`
}

// Plain is the node without variants.
func (k Kubelet) Plain() bool { return !k.SingleProcessOOMKill && !k.Swaps() && !k.Throttles() }

// Swaps is the variant NODE_WITH=swap.
func (k Kubelet) Swaps() bool { return k.MemorySwap.SwapBehavior == "LimitedSwap" }

// Throttles is the variant NODE_WITH=memory-qos.
func (k Kubelet) Throttles() bool { return k.FeatureGates["MemoryQoS"] }

// Find returns the name of that node and how its kubelet is configured. The name is empty when the cluster has none.
func Find(ctx context.Context, clients kubernetes.Interface, node string) (name string, k Kubelet, err error) {
	nodes, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: Label + "=" + node})
	if err != nil || len(nodes.Items) == 0 {
		return "", k, err
	}
	name = nodes.Items[0].Name
	raw, err := clients.CoreV1().RESTClient().Get().
		Resource("nodes").Name(name).SubResource("proxy").Suffix("configz").DoRaw(ctx)
	if err != nil {
		return "", k, fmt.Errorf("asking the kubelet of %s for its configuration: %w", name, err)
	}
	var configz struct {
		KubeletConfig Kubelet `json:"kubeletconfig"`
	}
	err = json.Unmarshal(raw, &configz)
	return name, configz.KubeletConfig, err
}
