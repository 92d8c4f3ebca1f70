// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Timeouts and polling interval for a busy two-core node. No spec measures speed with them.
const (
	soon     = 90 * time.Second // one pod starts, one reconcile
	later    = 4 * time.Minute  // several crashes with back-off between them
	interval = 500 * time.Millisecond
)

const (
	systemNamespace = "memfit-system"
	managerName     = "memfit-controller-manager"
)

var (
	restConfig *rest.Config
	k8s        client.Client
	clientset  kubernetes.Interface
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "memfit on a real node")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(interval)
	var err error
	restConfig, err = ctrl.GetConfig()
	Expect(err).NotTo(HaveOccurred(), "run make test-e2e, or set KUBECONFIG to a cluster with memfit")
	Expect(v1alpha1.AddToScheme(clientgoscheme.Scheme)).To(Succeed())
	k8s, err = client.New(restConfig, client.Options{Scheme: clientgoscheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	clientset, err = kubernetes.NewForConfig(restConfig)
	Expect(err).NotTo(HaveOccurred())
	By("waiting until both memfit replicas are ready")
	Eventually(managersReady).WithContext(ctx).WithTimeout(later).Should(Equal(2))
}, NodeTimeout(6*time.Minute))

// inNamespace creates a namespace for each spec of a container and prints its contents when the spec fails.
func inNamespace() *string {
	name := new(string)
	BeforeEach(func(ctx SpecContext) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
		Expect(k8s.Create(ctx, ns)).To(Succeed())
		*name = ns.Name
		DeferCleanup(func(ctx context.Context) {
			if CurrentSpecReport().Failed() {
				dump(ctx, *name)
			}
			Expect(
				client.IgnoreNotFound(k8s.Delete(ctx, ns, client.PropagationPolicy(metav1.DeletePropagationForeground))),
			).To(Succeed())
		})
	})
	return name
}
