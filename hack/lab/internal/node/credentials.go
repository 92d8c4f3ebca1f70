// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"fmt"
	"os"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/pki"
)

// writeCredentials writes the cluster's CAs, the certificates of all servers and the kubeconfigs of all clients.
func (n *Node) writeCredentials(forwardURL string) error {
	for _, dir := range []string{n.Layout.PKI(), n.Layout.Config()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	ca, err := pki.NewAuthority("memfit-lab-ca")
	if err != nil {
		return err
	}
	frontProxyCA, err := pki.NewAuthority("memfit-lab-front-proxy-ca")
	if err != nil {
		return err
	}
	if err := ca.Write(n.Layout.PKI(), "ca"); err != nil {
		return err
	}
	if err := frontProxyCA.Write(n.Layout.PKI(), "front-proxy-ca"); err != nil {
		return err
	}
	issued := []struct {
		file    string
		ca      *pki.Authority
		subject pki.Subject
	}{
		{"apiserver", ca, pki.Subject{Name: "kube-apiserver", Hosts: apiServerHosts()}},
		{"apiserver-kubelet-client", ca, pki.Subject{
			Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"},
		}},
		{"kubelet", ca, pki.Subject{
			Name: "system:node:" + layout.NodeName, Hosts: []string{layout.NodeName, layout.NodeIP, "127.0.0.1"},
		}},
		{"front-proxy-client", frontProxyCA, pki.Subject{Name: "front-proxy-client"}},
		{"service-accounts", ca, pki.Subject{Name: "service-accounts"}}, // only the key is used: it signs tokens
	}
	for _, i := range issued {
		pair, err := i.ca.Issue(i.subject)
		if err != nil {
			return err
		}
		if err := pair.Write(n.Layout.PKI(), i.file); err != nil {
			return err
		}
	}
	return n.writeKubeconfigs(ca, forwardURL)
}

// apiServerHosts returns the names and addresses by which pods, the node and the machine reach the API server.
func apiServerHosts() []string {
	return []string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		"localhost", "127.0.0.1", layout.NodeName, layout.NodeIP, layout.ServiceIP,
	}
}

func (n *Node) writeKubeconfigs(ca *pki.Authority, forwardURL string) error {
	inside := fmt.Sprintf("https://%s:%d", layout.NodeIP, layout.APIPort)
	clients := []struct {
		path, server string
		subject      pki.Subject
	}{
		{n.Layout.Kubeconfig(), forwardURL, pki.Subject{Name: "memfit-lab-admin", Groups: []string{"system:masters"}}},
		{n.config("controller-manager.kubeconfig"), inside, pki.Subject{Name: "system:kube-controller-manager"}},
		{n.config("scheduler.kubeconfig"), inside, pki.Subject{Name: "system:kube-scheduler"}},
		{n.config("kubelet.kubeconfig"), inside, pki.Subject{
			Name: "system:node:" + layout.NodeName, Groups: []string{"system:nodes"},
		}},
		{n.config("cert-manager.kubeconfig"), inside, pki.Subject{Name: "cert-manager", Groups: []string{"system:masters"}}},
	}
	for _, c := range clients {
		pair, err := ca.Issue(c.subject)
		if err != nil {
			return err
		}
		data, err := pki.Kubeconfig(layout.Namespace, c.server, ca.Cert, pair)
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.path, append(data, '\n'), 0o600); err != nil {
			return fmt.Errorf("writing a kubeconfig: %w", err)
		}
	}
	return nil
}
