// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/memfit/memfit/internal/informers"
)

// whenCertified creates, renews and publishes memfit's own certificate, and calls register once the certificate is
// mounted: without it, the webhook server would exit.
func whenCertified(mgr ctrl.Manager, o options, register func()) error {
	ready := make(chan struct{})
	err := rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:      types.NamespacedName{Namespace: o.namespace, Name: o.secretName},
		CertDir:        o.webhookCertPath,
		CAName:         "memfit-ca",
		CAOrganization: "memfit",
		DNSName:        o.serviceName + "." + o.namespace + ".svc",
		ExtraDNSNames:  []string{o.serviceName + "." + o.namespace + ".svc.cluster.local"},
		IsReady:        ready,
		Webhooks: []rotator.WebhookInfo{
			{Name: o.mutatingName, Type: rotator.Mutating},
			{Name: o.validatingName, Type: rotator.Validating},
		},
		FieldOwner: "memfit-certificates",
		// Every replica needs the files; the resource version of the Secret resolves concurrent writes.
		RequireLeaderElection: false,
		// The CA is published once the certificate is mounted. Without this, both parts of the rotator fill an empty Secret
		// at the same time, and the slower one logs an error.
		EnableReadinessCheck: true,
	})
	if err != nil {
		return fmt.Errorf("adding the certificate rotator: %w", err)
	}
	return mgr.Add(informers.EveryReplica(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-ready:
		}
		register()
		<-ctx.Done()
		return nil
	}))
}
