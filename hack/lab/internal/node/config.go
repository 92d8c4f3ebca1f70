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

// settings holds the values for the templates.
type settings struct {
	Bin, Run, State, PKI, Config string
	Socket, PauseImage           string
	NodeIP, PodCIDR, CgroupRoot  string
	// Network is the name of the pod network. It must be unique on the machine: the CNI library stores results by it.
	Network         string
	CrashBackoffMax string
	// FeatureGates are the entries of a YAML map without its braces.
	FeatureGates string
	// Guest has the variants of the node with cgroup v2; nil for the lab's first node.
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

// featureGates returns the gates that the kubelet's configuration needs and that are off by default.
func (n *Node) featureGates(guest *uml.Variants) string {
	var gates []string
	if strings.HasPrefix(n.Options.Kubernetes, "v1.34.") { // on by default since 1.35
		gates = append(gates, "KubeletCrashLoopBackOffMax: true")
	}
	if guest != nil && guest.MemoryQoS {
		gates = append(gates, "MemoryQoS: true")
	}
	return strings.Join(gates, ", ")
}

// configFiles maps templates to the rendered files, which are relative to the configuration directory.
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
