// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/memfit/memfit/api/v1alpha1"
)

const (
	awaitEvery   = 2 * time.Second // between two checks of the cluster
	awaitTimeout = 5 * time.Second // of one check
)

// awaitCluster waits until the API server answers and serves memfit's kinds. The process does not exit, because the
// kubelet would restart it with a backoff of 10 s to 5 minutes. While it waits, it is live but not ready, and both
// probes return the reason.
func awaitCluster(ctx context.Context, config *rest.Config, probeAddr string) error {
	config = rest.CopyConfig(config)
	config.Timeout = awaitTimeout
	plain, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("preparing to query the API server: %w", err)
	}
	client := discovery.ToDiscoveryInterfaceWithContext(plain)
	var why atomic.Pointer[string]
	stop := func() {}
	defer func() { stop() }()
	return wait.PollUntilContextCancel(ctx, awaitEvery, true, func(ctx context.Context) (bool, error) {
		missing := unserved(ctx, client)
		if missing == nil {
			return true, nil
		}
		text := missing.Error()
		old := why.Swap(&text)
		if old == nil {
			stop = serveWaiting(probeAddr, &why)
		}
		if old == nil || *old != text {
			ctrl.Log.WithName("setup").Info("Waiting", "for", text)
		}
		return false, nil
	})
}

// kinds are memfit's kinds that the manager watches or writes.
var kinds = []string{
	"ClusterMemoryProfile", "MemoryCheckpoint", "MemoryProfile", "MemoryRecommendation", "MemorySnapshot",
}

// unserved returns an error if the API server does not answer, or does not serve all of memfit's kinds.
func unserved(ctx context.Context, client discovery.DiscoveryInterfaceWithContext) error {
	version := v1alpha1.GroupVersion.String()
	found, err := client.ServerResourcesForGroupVersionWithContext(ctx, version)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("memfit's CRDs: this API server does not serve %s; apply config/crd", version)
	case err != nil:
		return fmt.Errorf("the API server: %w", err)
	}
	missing := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool {
		return slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind })
	})
	if len(missing) > 0 {
		return fmt.Errorf("memfit's CRDs: this API server does not serve %s of %s; apply config/crd",
			strings.Join(missing, ", "), version)
	}
	return nil
}

// serveWaiting answers the kubelet's probes until stop is called.
func serveWaiting(address string, why *atomic.Pointer[string]) (stop func()) {
	if address == "" || address == "0" {
		return func() {}
	}
	mux := http.NewServeMux()
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "waiting for "+*why.Load(), status) }
	}
	mux.HandleFunc("/healthz", answer(http.StatusOK))
	mux.HandleFunc("/readyz", answer(http.StatusServiceUnavailable))
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: awaitTimeout}
	go func() {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			ctrl.Log.WithName("setup").Error(err, "Could not serve the probes while memfit waits")
		}
	}()
	return func() { _ = server.Close() }
}
