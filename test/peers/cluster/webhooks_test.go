// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/authority"
	podwebhook "github.com/memfit/memfit/webhooks/pod"
	webhookserver "github.com/memfit/memfit/webhooks/server"
)

// webhooks starts all servers on a cluster without pods, and returns them when they answer correctly.
func webhooks(t *testing.T, o options) (*world, []*server, []*benchCase) {
	t.Helper()
	w := start(t, o)
	o.nodes, w.namespaces = 0, 100
	if err := w.createFixtures(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	cases, err := w.templates(deadline(t), o)
	if err != nil {
		t.Fatalf("filling the cluster: %v", err)
	}
	servers := w.serveAdmission(t, o)
	for _, s := range servers {
		if err := s.ready(t.Context(), cases); err != nil {
			t.Fatalf("%s does not answer correctly: %v; %v", s.name, err, s.logTail())
		}
	}
	return w, servers, cases
}

//go:embed sizes.yaml
var sizes string

// templates writes Deployments and ReplicaSets without pods to etcd, and returns the reviews of the pods that they
// would create. Every second Deployment has a profile and sizes.
func (w *world) templates(ctx context.Context, o options) ([]*benchCase, error) {
	progress("writing %d Deployments to etcd", o.workloads)
	with, without := &benchCase{name: governed}, &benchCase{name: ungoverned}
	to := w.writer(ctx)
	var last client.Object
	for n := range o.workloads {
		// 7919 is a prime that does not divide the number of workloads, so this visits all workloads, in an order that does
		// not favor the processor's cache.
		i := n * 7919 % o.workloads
		of := without
		d := w.deployment(i, replicasInTurn)
		d.Annotations = nil
		if i%2 == 0 {
			of, d.Annotations = with, map[string]string{v1alpha1.ProfileAnnotation: d.Name}
		}
		template := podTemplate.DeepCopy()
		maps.Copy(template.Labels, d.Spec.Template.Labels)
		d.Spec.Template = *template
		if err := to.put("deployments", d); err != nil {
			return nil, err
		}
		set := replicaSet(d, firstHash, limitOf(i))
		set.Spec.Template, last = d.Spec.Template, set
		if err := to.put("replicasets", set); err != nil {
			return nil, err
		}
		pod, err := review(set)
		if err != nil {
			return nil, err
		}
		of.reviews = append(of.reviews, pod)
		if of == without {
			continue
		}
		own := strings.NewReplacer("NAMESPACE", d.Namespace, "WORKLOAD", d.Name, "OWNER", string(d.UID)).Replace(sizes)
		for text := range strings.SplitSeq(own, "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
				return nil, err
			}
			group := object.GroupVersionKind().Group
			if err := to.put(group+"/"+strings.ToLower(object.GetKind())+"s", object); err != nil {
				return nil, err
			}
		}
	}
	if err := to.end(); err != nil {
		return nil, err
	}
	return []*benchCase{with, without}, w.waitCached(ctx, last)
}

// server is a program that answers AdmissionReviews.
type server struct {
	*program
	address, path string
	// protocols are the protocols that it offers; it is measured with each.
	protocols []string
	// patches: the answer for a governed pod must have a patch.
	patches bool
}

// serveAdmission starts the webhooks on the first core; the client runs on the others, so that they do not compete.
func (w *world) serveAdmission(t *testing.T, o options) (servers []*server) {
	t.Helper()
	// No replica of memfit becomes the leader: the measured replica only serves its webhook.
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "manager.memfit.dev"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(86400)),
			RenewTime: &metav1.MicroTime{Time: time.Now()},
		},
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err := errors.Join(err, w.client.Create(t.Context(), lease)); err != nil {
		t.Fatal(err)
	}
	authority.New(t).Write(t, dir, "tls", "webhook")
	var addresses [4]string
	for i := range addresses {
		if addresses[i], err = freeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	w.metrics, w.environment = addresses[3], []string{"ENABLE_WEBHOOKS=true", "NAMESPACE=kube-system"}
	if taskset, err := exec.LookPath("taskset"); err == nil {
		w.before = []string{taskset, "-c", "0"}
	}
	port := func(i int) string { return addresses[i][strings.LastIndex(addresses[i], ":")+1:] }
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	commands := [][]string{
		{"noop", self, "-noop=" + port(0), "-certificates=" + dir},
		{"memfit", o.memfit, "--webhook-port=" + port(1), "--webhook-cert-path=" + dir, "--metrics-bind-address=" + w.metrics,
			"--metrics-secure=false", "--health-probe-bind-address=0", "--zap-log-level=error"},
		// VPA's own default is --v=4, which logs every patch; --v=0 is fairer.
		{"vpa", o.vpa, "--kubeconfig=" + kubeconfig(dir, "vpa"), "--port=" + port(2), "--address=127.0.0.1:0", "--v=0",
			"--register-webhook=false", "--client-ca-file=" + certificate, "--tls-cert-file=" + certificate,
			"--tls-private-key=" + key},
	}
	if o.vpa == "" {
		commands = commands[:2]
	}
	for i, command := range commands {
		p := w.launch(t, dir, command[0], command[1:]...)
		s := &server{program: p, address: addresses[i], path: "/", protocols: []string{http1}, patches: p.name != "noop"}
		switch p.name {
		case "memfit":
			s.path = podwebhook.Path
		case "vpa":
			s.protocols = []string{http1, http2}
		}
		servers = append(servers, s)
	}
	return servers
}

// ready waits until the server does its work: governed pods get a patch, the others none.
func (s *server) ready(ctx context.Context, cases []*benchCase) (err error) {
	c := s.client(http1)
	defer c.CloseIdleConnections()
	waited := wait.PollUntilContextTimeout(ctx, time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, bc := range cases {
			for range 100 {
				if err = s.check(ctx, c, bc); err != nil {
					return false, s.alive()
				}
			}
		}
		return true, nil
	})
	return errors.Join(waited, err)
}

func (s *server) check(ctx context.Context, c *http.Client, bc *benchCase) error {
	text, err := s.ask(ctx, c, bc.next())
	if err != nil {
		return err
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &review); err != nil {
		return err
	}
	r := review.Response
	if r == nil || !r.Allowed {
		return fmt.Errorf("a pod was not allowed: %+v", r)
	}
	if want := s.patches && bc.name == governed; len(r.Patch) > 0 != want {
		return fmt.Errorf("%s pod: patch is %q, want one: %t (warnings %q)", bc.name, r.Patch, want, r.Warnings)
	}
	return nil
}

// noop serves the baseline: the manager's webhook server with a handler that allows everything.
func noop(ctx context.Context, certificates string, port int) error {
	ctrl.SetLogger(logr.Discard())
	server := webhookserver.New(webhookserver.Options{
		Host: "127.0.0.1", Port: port, CertDir: certificates, Metrics: webhookserver.NewMetrics(ctrlmetrics.Registry),
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.NextProtos, c.DynamicRecordSizingDisabled = []string{http1}, true
		}},
	})
	allow := func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }
	server.Register("/", &admission.Webhook{Handler: admission.HandlerFunc(allow)})
	return server.Start(ctx)
}
