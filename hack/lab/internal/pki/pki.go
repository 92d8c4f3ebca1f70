// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki creates the certificates and kubeconfigs of the lab's cluster. Each lab has its own CAs, which are
// deleted with it. Keys are ECDSA P-256, because they are created in microseconds.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is longer than a lab is used, but limits the use of forgotten credentials.
const validity = 365 * 24 * time.Hour

// Pair is a certificate with its key, PEM-encoded.
type Pair struct {
	Cert, Key []byte
}

// Authority signs certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  crypto.Signer
}

// Subject is the holder of a certificate. Servers have hosts. Clients have a name and groups, by which Kubernetes
// authorizes them.
type Subject struct {
	Name   string
	Groups []string
	Hosts  []string // names and IP addresses
}

// NewAuthority creates a CA.
func NewAuthority(name string) (*Authority, error) {
	template := certificate(Subject{Name: name})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = nil
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating the key of %s: %w", name, err)
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("creating the CA %s: %w", name, err)
	}
	return &Authority{Pair: pair, cert: template, key: key}, nil
}

// LoadAuthority reads a CA that Write wrote.
func LoadAuthority(dir, name string) (*Authority, error) {
	var pair Pair
	var err error
	if pair.Cert, err = os.ReadFile(filepath.Join(dir, name+".crt")); err != nil {
		return nil, fmt.Errorf("reading the CA: %w", err)
	}
	if pair.Key, err = os.ReadFile(filepath.Join(dir, name+".key")); err != nil {
		return nil, fmt.Errorf("reading the CA: %w", err)
	}
	both, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the CA %s: %w", name, err)
	}
	key, ok := both.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key of the CA %s cannot sign", name)
	}
	return &Authority{Pair: pair, cert: both.Leaf, key: key}, nil
}

// Issue creates a certificate for a server, a client or both.
func (a *Authority) Issue(s Subject) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("creating the key of %s: %w", s.Name, err)
	}
	pair, err := sign(certificate(s), a.cert, key, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("issuing the certificate of %s: %w", s.Name, err)
	}
	return pair, nil
}

// Write writes NAME.crt and NAME.key into dir.
func (p Pair) Write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Cert, 0o644); err != nil {
		return fmt.Errorf("writing the certificate of %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600); err != nil {
		return fmt.Errorf("writing the key of %s: %w", name, err)
	}
	return nil
}

// Kubeconfig returns a kubeconfig as JSON, which is YAML. It refers to no other files, so it can be copied anywhere.
func Kubeconfig(name, server string, caCert []byte, client Pair) ([]byte, error) {
	type object = map[string]any
	return json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters": []object{
			{"name": name, "cluster": object{"server": server, "certificate-authority-data": caCert}},
		},
		"users": []object{
			{"name": name, "user": object{"client-certificate-data": client.Cert, "client-key-data": client.Key}},
		},
		"contexts": []object{{"name": name, "context": object{"cluster": name, "user": name}}},
	}, "", "  ")
}

func certificate(s Subject) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // crypto/rand returns no errors: it ends the program itself
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: s.Name, Organization: s.Groups},
		NotBefore:    now.Add(-time.Hour), // clocks may differ
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, host := range s.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if len(s.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return template
}

func sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey, signer crypto.Signer) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}
