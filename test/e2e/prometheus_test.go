// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// prometheusProgram returns the path of the machine's Prometheus, or of the distribution's package, which it unpacks
// without installing, so that no service starts.
func prometheusProgram(ctx context.Context, dir string) string {
	GinkgoHelper()
	if path, err := exec.LookPath("prometheus"); err == nil {
		return path
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		Skip("needs prometheus in the PATH, or apt-get to download it")
	}
	run := func(name string, args ...string) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, GinkgoWriter, GinkgoWriter
		Expect(cmd.Run()).To(Succeed(), "%s %v", name, args)
	}
	run("apt-get", "download", "prometheus")
	packages, err := filepath.Glob(filepath.Join(dir, "prometheus_*.deb"))
	Expect(err).NotTo(HaveOccurred())
	Expect(packages).To(HaveLen(1))
	run("dpkg-deb", "-x", packages[0], dir)
	return filepath.Join(dir, "usr", "bin", "prometheus")
}

// startProgram runs a program until the spec ends.
func startProgram(name string, env []string, args ...string) {
	GinkgoHelper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = GinkgoWriter, GinkgoWriter
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

func freeAddress() string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	return l.Addr().String()
}

// scraperToken returns a token that may only read the kubelets' metrics through the API server.
func scraperToken(ctx context.Context, namespace string) string {
	GinkgoHelper()
	name := metav1.ObjectMeta{Name: "prometheus-" + namespace, Namespace: namespace}
	account, err := clientset.CoreV1().ServiceAccounts(namespace).Create(
		ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{},
	)
	Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name.Name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes/proxy", "nodes/metrics"}, Verbs: []string{"get"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	Expect(k8s.Create(ctx, role)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, role)).To(Succeed()) })
	Expect(k8s.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, binding)).To(Succeed()) })
	token, err := clientset.CoreV1().ServiceAccounts(namespace).CreateToken(
		ctx, account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{},
	)
	Expect(err).NotTo(HaveOccurred())
	return token.Status.Token
}

// prometheusOf starts a real Prometheus on loopback that scrapes the node's cAdvisor metrics, and returns its URL.
func prometheusOf(ctx context.Context, namespace, node string) string {
	GinkgoHelper()
	dir, address := GinkgoT().TempDir(), freeAddress()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		return path
	}
	server, err := url.Parse(restConfig.Host)
	Expect(err).NotTo(HaveOccurred())
	config := fmt.Sprintf(`scrape_configs:
- job_name: cadvisor
  scrape_interval: 5s
  scheme: https
  metrics_path: /api/v1/nodes/%s/proxy/metrics/cadvisor
  authorization: {credentials_file: %s}
  tls_config: {ca_file: %s}
  static_configs: [{targets: [%q], labels: {node: %q}}]
`, node, write("token", scraperToken(ctx, namespace)), write("ca.crt", string(restConfig.CAData)), server.Host, node)
	startProgram(prometheusProgram(ctx, dir), nil, "--config.file="+write("prometheus.yml", config),
		"--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--storage.tsdb.retention.time=1h", "--web.listen-address="+address, "--log.level=warn")
	return "http://" + address
}

// memfitOnThisMachine builds the manager and runs it outside the cluster, without webhooks.
func memfitOnThisMachine(ctx context.Context, args ...string) {
	GinkgoHelper()
	program := filepath.Join(GinkgoT().TempDir(), "manager")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "../../cmd/manager")
	build.Stdout, build.Stderr = GinkgoWriter, GinkgoWriter
	Expect(build.Run()).To(Succeed())
	startProgram(program, []string{"ENABLE_WEBHOOKS=false"},
		append(
			[]string{
				"--metrics-bind-address=0", "--health-probe-bind-address=" + freeAddress(), "--usage-interval=0",
				"--leader-elect=false",
			}, args...,
		)...)
}

// Serial: the spec stops the memfit in the cluster and runs one outside, which can reach Prometheus on loopback.
var _ = Describe("history from a real Prometheus", Serial, func() {
	namespace := inNamespace()

	It("is available at the first step of a workload that ran before memfit was installed", func(ctx SpecContext) {
		By("running a workload without a profile, and Prometheus")
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "128Mi", nil, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Args = []string{"-hold", "60Mi"}
		}))).To(Succeed())
		pod := runningPod(ctx, *namespace)
		address := prometheusOf(ctx, *namespace, pod.Spec.NodeName)
		c, err := api.NewClient(api.Config{Address: address})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			query := fmt.Sprintf(`count_over_time(container_memory_rss{namespace=%q,container="app"}[10m])`, *namespace)
			value, _, err := promv1.NewAPI(c).Query(ctx, query, time.Now())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(value).To(BeAssignableToTypeOf(model.Vector{}))
			g.Expect(value.(model.Vector)).To(HaveLen(1))
			g.Expect(float64(value.(model.Vector)[0].Value)).To(
				BeNumerically(">=", 5), "about a minute of samples: the kubelet measures every ten seconds",
			)
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())

		By("starting memfit for the workload, with Prometheus as its only source")
		DeferCleanup(func(ctx context.Context) {
			scaleManager(ctx, 2)
			Eventually(managersReady).WithContext(ctx).WithTimeout(later).Should(Equal(2))
		})
		scaleManager(ctx, 0)
		Eventually(func() []corev1.Pod { return managerPods(ctx) }).WithContext(ctx).WithTimeout(later).Should(BeEmpty())
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{
			Runtime:  v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		}))).To(Succeed())
		memfitOnThisMachine(ctx, "--prometheus-url="+address, "--prometheus-history=1h", "--prometheus-step=15s")

		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.Containers).To(HaveLen(1))
			evidence := rec.Status.Containers[0].Evidence
			g.Expect(evidence.HistorySource).To(Equal("prometheus"))
			g.Expect(evidence.Samples).To(BeNumerically(">=", 6), "two per step of 15 s")
			g.Expect(evidence.PeakRSS).NotTo(BeNil())
			g.Expect(evidence.PeakRSS.Value()).To(And(BeNumerically(">=", 60<<20), BeNumerically("<", 100<<20)))
			GinkgoWriter.Printf("%+v\n", evidence)
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
	}, SpecTimeout(later*4))
})
