// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/authority"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/tree"
)

// host is the name of memfit's Service, and of its user in the API server's files.
const host = "memfit-webhook-service.memfit-system.svc"

// TestOnlyTheAPIServer: an API server that is set up as docs/guide/install.md says shows its certificate, and pods are
// injected. Whoever has none, or another one, is turned away with a reason and counted.
func TestOnlyTheAPIServer(t *testing.T) {
	dir, ca := t.TempDir(), authority.New(t)
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	ca.Write(t, dir, "tls", "memfit", host)
	ca.Write(t, dir, "webhooks", "kube-apiserver-webhooks")
	_, text, _ := strings.Cut(address(t), ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	flag, admission := filesOfThePage(t, dir, port)
	c := newCluster(t, func(e *envtest.Environment) {
		e.WebhookInstallOptions.LocalServingHost, e.WebhookInstallOptions.LocalServingPort = "127.0.0.1", port
		e.ControlPlane.GetAPIServer().Configure().Set(flag, admission)
	})
	c.serviceFor(t, port, ca.PEM)
	p := c.start(
		t, "--webhook-cert-path="+dir, "--client-ca="+filepath.Join(dir, "ca.crt"), "--client-names=kube-apiserver-webhooks",
	)
	p.ready(t)
	if pod := c.workload(t); pod.Annotations[v1alpha1.InjectedAnnotation] == "" {
		t.Errorf("the pod was not injected: %v", pod.Annotations)
	}
	refused := p.turnedAway(t)
	if refused != 0 {
		t.Errorf("%d clients were refused, and there was none but the API server", refused)
	}

	stranger, roots := authority.New(t), x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	for name, by := range map[string]*authority.Authority{
		// the right authority, and another name
		"certificate required": nil, "unknown certificate authority": stranger, "bad certificate": ca,
	} {
		config := &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS13}
		if by != nil {
			pair, err := tls.X509KeyPair(by.Sign(t, "somebody"))
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		direct := http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		review := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","namespace":"shop","object":{"metadata":{},"spec":{}}}}`
		answer, err := direct.Post(
			"https://"+net.JoinHostPort("127.0.0.1", text)+"/mutate--v1-pod", "application/json",
			bytes.NewReader([]byte(review)),
		)
		if err == nil {
			_ = answer.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("a direct request was answered with %v, want %q", err, name)
		}
		refused++
		eventually(t, 10*time.Second, func() error {
			if got := p.turnedAway(t); got != refused {
				return fmt.Errorf("%d clients counted as refused, want %d", got, refused)
			}
			return nil
		})
	}
	if log := p.output.String(); strings.Count(log, "Refused a client without the certificate") != 1 {
		t.Errorf("the log does not say once that somebody had no certificate")
	}
}

// filesOfThePage writes what docs/guide/install.md tells an API server's administrator, and returns the flag that
// names it. What differs is where files are, and that memfit's Service has the port of this test behind its name.
func filesOfThePage(t *testing.T, dir string, port int) (flag, file string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(tree.Root(), "docs", "guide", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Only the API server\n")
	_, block, _ := strings.Cut(section, "\n```yaml\n")
	block, _, _ = strings.Cut(block, "\n```\n")
	documents := strings.Split(block, "\n---\n")
	names := regexp.MustCompile(`^# (?:kube-apiserver --([a-z-]+)=)?/etc/kubernetes/([a-z.]+)`)
	for _, document := range documents {
		name := names.FindStringSubmatch(document)
		if name == nil || len(documents) != 2 {
			t.Fatalf("docs/guide/install.md shows %d files, and not for each its name:\n%s", len(documents), document)
		}
		document = strings.NewReplacer(
			"/etc/kubernetes/pki/", dir+"/", "/etc/kubernetes/", dir+"/", host, fmt.Sprintf("%s:%d", host, port),
		).Replace(document)
		path := filepath.Join(dir, name[2])
		if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
		if name[1] != "" {
			flag, file = name[1], path
		}
	}
	return flag, file
}

// serviceFor makes the webhooks those of a Service, as they are in a cluster, which leads to this machine.
func (c *cluster) serviceFor(t *testing.T, port int, ca []byte) {
	t.Helper()
	c.create(t, build.Namespace("memfit-system"))
	c.create(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "memfit-system", Name: "memfit-webhook-service"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Port: int32(port)}},
		},
	})
	at := func(config *admissionregistrationv1.WebhookClientConfig, path string) {
		config.URL, config.CABundle = nil, ca
		config.Service = &admissionregistrationv1.ServiceReference{
			Namespace: "memfit-system", Name: "memfit-webhook-service", Port: new(int32(port)), Path: &path,
		}
	}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	if err := c.client.Get(t.Context(), client.ObjectKey{Name: "mutating-webhook-configuration"}, &mutating); err != nil {
		t.Fatal(err)
	}
	at(&mutating.Webhooks[0].ClientConfig, "/mutate--v1-pod")
	if err := c.client.Update(t.Context(), &mutating); err != nil {
		t.Fatal(err)
	}
	// Profiles go to the other configuration, at URLs, where the API server shows nothing: they are admitted unchecked, as
	// its policy says.
	if err := c.client.Delete(
		t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "validating-webhook-configuration"},
		},
	); err != nil {
		t.Fatal(err)
	}
}

// turnedAway is how many clients were refused for want of a certificate.
func (p *process) turnedAway(t *testing.T) (n int) {
	t.Helper()
	text, err := get("http://" + p.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(text, `memfit_admission_refused_total{reason="client-certificate"} `)
	value, _, _ = strings.Cut(value, "\n")
	if n, err = strconv.Atoi(value); err != nil {
		t.Fatalf("the metrics do not say how many clients were refused: %v", err)
	}
	return n
}
