// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"testing"
)

func TestIssuedCertificatesVerify(t *testing.T) {
	ca, err := NewAuthority("lab-ca")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.Cert)
	server, err := ca.Issue(Subject{Name: "kubelet", Hosts: []string{"node", "10.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"node", "10.0.0.1"} {
		if _, err := parse(t, server.Cert).Verify(x509.VerifyOptions{DNSName: host, Roots: pool}); err != nil {
			t.Errorf("as server %s: %v", host, err)
		}
	}
	client, err := ca.Issue(Subject{Name: "system:admin", Groups: []string{"system:masters"}})
	if err != nil {
		t.Fatal(err)
	}
	cert := parse(t, client.Cert)
	if _, err := cert.Verify(
		x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	); err != nil {
		t.Errorf("as client: %v", err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: pool}); err == nil {
		t.Error("a client's certificate is valid for a server")
	}
}

func TestKubeconfigCarriesItsCertificates(t *testing.T) {
	data, err := Kubeconfig("lab", "https://127.0.0.1:1", []byte("ca"), Pair{Cert: []byte("cert"), Key: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     []byte `json:"certificate-authority-data"`
			}
		}
	}
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	if c := config.Clusters[0].Cluster; c.Server != "https://127.0.0.1:1" || string(c.CA) != "ca" {
		t.Errorf("cluster = %+v", c)
	}
}

// TestLoadAuthority: certificates of a loaded CA are valid for the CA that was written.
func TestLoadAuthority(t *testing.T) {
	dir := t.TempDir()
	written, err := NewAuthority("ca")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LoadAuthority(dir, "ca"); err == nil {
		t.Error("loaded a missing CA")
	}
	if err := written.Write(dir, "ca"); err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := loaded.Issue(Subject{Name: "node", Hosts: []string{"10.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := parse(t, pair.Cert).CheckSignatureFrom(parse(t, written.Cert)); err != nil {
		t.Error(err)
	}
}

func parse(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
