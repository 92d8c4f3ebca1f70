// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeletcert decides which serving certificates of kubelets may be approved: those that a node asks for
// itself, for addresses that its Node object has. Pure; what kubectl printed comes in as bytes.
//
// It checks what the signer kubernetes.io/kubelet-serving demands, and the addresses, which that signer leaves to the
// one who approves.
package kubeletcert

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

const (
	signer     = "kubernetes.io/kubelet-serving"
	userPrefix = "system:node:"
	nodesGroup = "system:nodes"
)

// Request is a CertificateSigningRequest for a serving certificate of a kubelet.
type Request struct {
	Name string
	// Node is the one that the API server authenticated when it asked.
	Node    string
	Pending bool // neither approved nor denied
	Issued  bool

	user           string
	groups, usages []string
	csr            []byte
}

// Node is one of the cluster.
type Node struct {
	Name string
	// Addresses are its IP addresses and names, as its Node object has them.
	Addresses []string
}

// ParseRequests reads what `kubectl get csr -o json` prints, and leaves out what other signers sign.
func ParseRequests(list []byte) ([]Request, error) {
	var in struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct {
				Request        []byte
				SignerName     string
				Username       string
				Groups, Usages []string
			}
			Status struct {
				Certificate []byte
				Conditions  []struct{ Type string }
			}
		}
	}
	if err := json.Unmarshal(list, &in); err != nil {
		return nil, fmt.Errorf("parsing the cluster's certificate signing requests: %w", err)
	}
	var all []Request
	for _, item := range in.Items {
		if item.Spec.SignerName != signer {
			continue
		}
		all = append(all, Request{
			Name: item.Metadata.Name, Node: strings.TrimPrefix(item.Spec.Username, userPrefix),
			Pending: len(item.Status.Conditions) == 0, Issued: len(item.Status.Certificate) > 0,
			user: item.Spec.Username, groups: item.Spec.Groups, usages: item.Spec.Usages, csr: item.Spec.Request,
		})
	}
	return all, nil
}

// ParseNodes reads what `kubectl get nodes -o json` prints.
func ParseNodes(list []byte) ([]Node, error) {
	var in struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct{ Addresses []struct{ Address string } }
		}
	}
	if err := json.Unmarshal(list, &in); err != nil {
		return nil, fmt.Errorf("parsing the cluster's nodes: %w", err)
	}
	var all []Node
	for _, item := range in.Items {
		n := Node{Name: item.Metadata.Name}
		for _, a := range item.Status.Addresses {
			n.Addresses = append(n.Addresses, a.Address)
		}
		all = append(all, n)
	}
	return all, nil
}

// Check reports why a request must not be approved, or nil.
func Check(r Request, nodes []Node) error {
	if err := r.check(nodes); err != nil {
		return fmt.Errorf("%s, which asks for a serving certificate of node %s: %w", r.Name, r.Node, err)
	}
	return nil
}

func (r Request) check(nodes []Node) error {
	at := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == r.Node })
	switch {
	case r.user != userPrefix+r.Node || !slices.Contains(r.groups, nodesGroup):
		return errors.New("it was not asked by a node")
	case at < 0:
		return errors.New("the node does not exist")
	}
	if err := checkUsages(r.usages); err != nil {
		return err
	}
	csr, err := parse(r.csr)
	if err != nil {
		return err
	}
	return checkContents(csr, nodes[at])
}

func checkUsages(usages []string) error {
	for _, usage := range usages {
		if usage != "server auth" && usage != "digital signature" && usage != "key encipherment" {
			return fmt.Errorf("it may be used for %q, and a serving certificate is for server auth", usage)
		}
	}
	if !slices.Contains(usages, "server auth") {
		return errors.New("it is not for server auth")
	}
	return nil
}

func parse(text []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("spec.request is not one CERTIFICATE REQUEST in PEM")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("spec.request: %w", err)
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the requester does not hold the key: %w", err)
	}
	return csr, nil
}

func checkContents(csr *x509.CertificateRequest, n Node) error {
	switch {
	case csr.Subject.CommonName != userPrefix+n.Name:
		return fmt.Errorf("its common name is %q", csr.Subject.CommonName)
	case !slices.Equal(csr.Subject.Organization, []string{nodesGroup}):
		return fmt.Errorf("its organization is %q, and that of nodes is %q", csr.Subject.Organization, nodesGroup)
	case len(csr.EmailAddresses) > 0 || len(csr.URIs) > 0:
		return errors.New("it names mail addresses or URIs, which no kubelet has")
	case len(csr.DNSNames)+len(csr.IPAddresses) == 0:
		return errors.New("it names no address")
	}
	for _, name := range csr.DNSNames {
		if !slices.ContainsFunc(n.Addresses, func(a string) bool { return strings.EqualFold(a, name) }) {
			return notItsAddress(name, n)
		}
	}
	for _, ip := range csr.IPAddresses {
		if !slices.ContainsFunc(n.Addresses, func(a string) bool { return net.ParseIP(a).Equal(ip) }) {
			return notItsAddress(ip.String(), n)
		}
	}
	return nil
}

func notItsAddress(address string, n Node) error {
	return fmt.Errorf("it names %s, and the node has %s", address, strings.Join(n.Addresses, ", "))
}
