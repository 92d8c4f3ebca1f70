// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/uml"
)

//go:embed templates
var templates embed.FS

// settings is what the templates see.
type settings struct {
	Bin, Run, State, PKI, Config string
	Socket, PauseImage           string
	NodeIP, PodCIDR, CgroupRoot  string
	// Network is the name of the pod network: the CNI library keeps its results by that name in one place of the machine.
	Network         string
	CrashBackoffMax string
	// FeatureGates are those that the rest of the configuration needs, as YAML writes the inside of a map.
	FeatureGates string
	// Guest has the variants of the node with cgroup v2; nil for the lab's own node, which shares the machine's kernel.
	Guest *uml.Variants
}

func (n *Node) settings() settings {
	s := settings{
		Bin: n.Bin, Run: n.Layout.Run, State: n.Layout.State, PKI: n.Layout.PKI(), Config: n.Layout.Config(),
		Socket: n.Layout.ContainerdSocket(),
		NodeIP: layout.NodeIP, PodCIDR: layout.PodCIDR, CgroupRoot: n.Layout.CgroupRoot(), Network: n.Layout.Name + "-pods",
		CrashBackoffMax: n.Options.CrashBackoffMax.String(),
	}
	s.FeatureGates = n.featureGates(nil)
	if len(n.Images) > 0 {
		s.PauseImage = n.Images[0].Ref
	}
	return s
}

// featureGates are gates that are off by default and that the kubelet's configuration needs.
func (n *Node) featureGates(guest *uml.Variants) string {
	var gates []string
	if strings.HasPrefix(n.Options.Kubernetes, "v1.34.") { // from 1.35 on it is on
		gates = append(gates, "KubeletCrashLoopBackOffMax: true")
	}
	if guest != nil && guest.MemoryQoS {
		gates = append(gates, "MemoryQoS: true")
	}
	return strings.Join(gates, ", ")
}

// configFiles are the rendered templates and where they go below the configuration directory.
var configFiles = map[string]string{
	"containerd.toml": "containerd.toml",
	"kubelet.yaml":    "kubelet.yaml",
	"cni.json":        "cni/10-lab.conflist",
}

func (n *Node) writeConfig() error {
	for name, target := range configFiles {
		data, err := render(name, n.settings())
		if err != nil {
			return err
		}
		path := n.config(target)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return fmt.Errorf("writing the configuration: %w", err)
		}
	}
	return nil
}

func render(name string, s settings) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(templates, "templates/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, s); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return out.Bytes(), nil
}
