// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package suite starts Ginkgo suites that need a real API server.
package suite

import (
	"errors"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/expect"
)

// Start sends logs and failures to Ginkgo, starts an API server with memfit's CRDs, and returns its config and a scheme
// with the kinds of Kubernetes and memfit. The caller then calls ginkgo.RunSpecs.
func Start(t *testing.T, edits ...func(*envtest.Environment)) (*rest.Config, *runtime.Scheme) {
	t.Helper()
	logf.SetLogger(zap.New(zap.WriteTo(ginkgo.GinkgoWriter), zap.UseDevMode(true)))
	gomega.RegisterFailHandler(ginkgo.Fail)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return expect.APIServer(t, edits...), scheme
}
