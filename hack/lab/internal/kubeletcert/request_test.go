// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"
)

var nodes = []Node{
	{Name: "kind-worker", Addresses: []string{"172.18.0.3", "fc00::3", "kind-worker"}},
	{Name: "other", Addresses: []string{"172.18.0.4", "other"}},
}

// what is asked, before it is signed and listed.
type asked struct {
	csr              x509.CertificateRequest
	username, signer string
	groups, usages   []string
	pem              func([]byte) []byte
}

func (a *asked) request(t *testing.T) []Request {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.csr, key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if a.pem != nil {
		text = a.pem(text)
	}
	list, err := json.Marshal(map[string]any{"items": []any{map[string]any{
		"metadata": map[string]any{"name": "csr-1"},
		"spec": map[string]any{
			"request": text, "signerName": a.signer, "username": a.username, "groups": a.groups, "usages": a.usages,
		},
		"status": map[string]any{},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := ParseRequests(list)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// likeAKubelet is what a kubelet with serverTLSBootstrap asks for.
func likeAKubelet() *asked {
	return &asked{
		csr: x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: "system:node:kind-worker", Organization: []string{"system:nodes"}},
			DNSNames: []string{"kind-worker"}, IPAddresses: []net.IP{net.ParseIP("172.18.0.3"), net.ParseIP("fc00::3")},
		},
		username: "system:node:kind-worker", signer: "kubernetes.io/kubelet-serving",
		groups: []string{"system:nodes", "system:authenticated"}, usages: []string{"digital signature", "server auth"},
	}
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		change func(*asked)
		want   string // of the error; empty: it may be approved
	}{
		"a kubelet's":                    {func(*asked) {}, ""},
		"one with an RSA key, as it was": {func(a *asked) { a.usages = append(a.usages, "key encipherment") }, ""},
		"an address of another node": {
			func(a *asked) { a.csr.IPAddresses = append(a.csr.IPAddresses, net.ParseIP("172.18.0.4")) },
			"it names 172.18.0.4, and the node has 172.18.0.3",
		},
		"the API server's name": {
			func(a *asked) { a.csr.DNSNames = []string{"kubernetes.default.svc"} }, "it names kubernetes.default.svc",
		},
		"no address": {func(a *asked) { a.csr.DNSNames, a.csr.IPAddresses = nil, nil }, "names no address"},
		"another node asks": {
			func(a *asked) { a.username = "system:node:other" }, `its common name is "system:node:kind-worker"`,
		},
		"a ServiceAccount asks": {
			func(a *asked) { a.username = "system:serviceaccount:shop:default" }, "not asked by a node",
		},
		"a user of a node's name who is none": {
			func(a *asked) { a.groups = []string{"system:authenticated"} }, "not asked by a node",
		},
		"a node that is gone": {
			func(a *asked) {
				a.username = "system:node:gone"
				a.csr.Subject.CommonName = a.username
			}, "the node does not exist",
		},
		"a client's certificate": {func(a *asked) { a.usages = []string{"client auth"} }, `may be used for "client auth"`},
		"for both":               {func(a *asked) { a.usages = append(a.usages, "client auth") }, `may be used for "client auth"`},
		"for nothing":            {func(a *asked) { a.usages = nil }, "not for server auth"},
		"an administrator's organization": {
			func(a *asked) { a.csr.Subject.Organization = []string{"system:nodes", "system:masters"} }, "its organization is",
		},
		"a URI": {func(a *asked) { a.csr.URIs = []*url.URL{{Scheme: "spiffe", Host: "shop"}} }, "mail addresses or URIs"},
		"two requests in one": {
			func(a *asked) { a.pem = func(text []byte) []byte { return append(text, text...) } }, "not one CERTIFICATE REQUEST",
		},
		"no request": {func(a *asked) { a.pem = func([]byte) []byte { return nil } }, "not one CERTIFICATE REQUEST"},
		"a broken signature": {
			func(a *asked) {
				a.pem = func(text []byte) []byte {
					block, _ := pem.Decode(text)
					block.Bytes[len(block.Bytes)-1] ^= 1
					return pem.EncodeToMemory(block)
				}
			}, "does not hold the key",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := likeAKubelet()
			tc.change(a)
			all := a.request(t)
			if len(all) != 1 || !all[0].Pending || all[0].Issued {
				t.Fatalf("ParseRequests() = %+v, want one that is pending", all)
			}
			err := Check(all[0], nodes)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("Check() = %v, want nil", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("Check() = %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestParseRequestsLeavesOthersOut(t *testing.T) {
	a := likeAKubelet()
	a.signer = "kubernetes.io/kube-apiserver-client-kubelet"
	if all := a.request(t); len(all) != 0 {
		t.Errorf("ParseRequests() = %+v, want none: another signer's", all)
	}
}

func TestParseNodes(t *testing.T) {
	got, err := ParseNodes([]byte(`{"items":[{"metadata":{"name":"n"},"status":{"addresses":[
		{"type":"InternalIP","address":"10.0.0.1"},{"type":"Hostname","address":"n"}]}}]}`))
	if err != nil || len(got) != 1 || got[0].Name != "n" || strings.Join(got[0].Addresses, " ") != "10.0.0.1 n" {
		t.Errorf("ParseNodes() = %+v, %v", got, err)
	}
}
