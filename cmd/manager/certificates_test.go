// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/test/build"
)

// TestSelfManagedCertificates: without cert-manager, the manager fills the Secret, serves with what the kubelet then
// mounts, and writes the CA where the API server looks for it. Until the files are there it waits, and is not ready.
func TestSelfManagedCertificates(t *testing.T) {
	c := newCluster(t)
	c.create(t, build.Namespace("memfit-system"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "memfit-system", Name: "webhook-server-cert"}}
	c.create(t, secret)
	mounted := t.TempDir()
	p := c.start(t, "--cert-mode=self-managed", "--webhook-cert-path="+mounted,
		"--mutating-webhook=mutating-webhook-configuration", "--validating-webhook=validating-webhook-configuration")

	eventually(t, 30*time.Second, func() error {
		if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		if len(secret.Data["tls.crt"]) == 0 {
			return errors.New("the Secret is still empty")
		}
		return nil
	})
	if _, err := get("http://" + p.health + "/readyz"); err == nil {
		t.Error("the manager is ready before its certificate is mounted")
	}
	for _, name := range []string{"tls.key", "tls.crt"} { // what the kubelet does
		if err := os.WriteFile(filepath.Join(mounted, name), secret.Data[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.ready(t)

	eventually(t, 10*time.Second, func() error {
		var pods admissionregistrationv1.MutatingWebhookConfiguration
		if err := c.client.Get(t.Context(), client.ObjectKey{Name: "mutating-webhook-configuration"}, &pods); err != nil {
			return err
		}
		var profiles admissionregistrationv1.ValidatingWebhookConfiguration
		if err := c.client.Get(
			t.Context(), client.ObjectKey{Name: "validating-webhook-configuration"}, &profiles,
		); err != nil {
			return err
		}
		if !bytes.Equal(pods.Webhooks[0].ClientConfig.CABundle, secret.Data["ca.crt"]) ||
			!bytes.Equal(profiles.Webhooks[0].ClientConfig.CABundle, secret.Data["ca.crt"]) {
			return errors.New("the webhook configurations trust another CA")
		}
		return nil
	})
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(secret.Data["ca.crt"])
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.webhook.LocalServingPort), //nolint:noctx // answers at once or not at all
		&tls.Config{RootCAs: trusted, ServerName: "memfit-webhook-service.memfit-system.svc", MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatalf("the API server would not trust the webhook: %v", err)
	}
	_ = conn.Close()
}
