// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/build"
)

// formats prints the shop as kubectl users ask for it.
func (c server) formats(t *testing.T) {
	t.Helper()
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"deployment.apps/web\n", []string{"status", "-n", "shop", "-o", "name"}},
		{"daemonset.apps/agent\nstatefulset.apps/orders\n", []string{
			"status", "-n", "shop", "-o", "name", "--sort-by", "name",
		}},
		{"web orders web agent report\n", []string{"status", "-n", "shop", "-o", "jsonpath={.items[*].name}"}},
		{"WORKLOAD   KILLS\norders     0\n", []string{
			"status", "-n", "shop", "-o", "custom-columns=WORKLOAD:.name,KILLS:.oomKills", "--sort-by", ".oomKills",
		}},
		{",shop,Deployment,web,app,web,", []string{"status", "-n", "shop", "-o", "csv", "--no-headers"}},
		{"pod/web-7d9f8\n", []string{"top", "-n", "inside", "-o", "name"}},
		{"app 512Mi\n", []string{"top", "-n", "inside", "-o", "jsonpath={.items[0].container} {.items[0].limit}"}},
		{"statefulset.apps/web\n", []string{"scan", "-n", "inside", "-o", "name"}},
		{"Reverted", []string{"history", "deploy/web", "-n", "shop", "-o", "custom-columns=W:.what", "--no-headers"}},
		{"Increase\n", []string{"explain", "deploy/web", "-n", "shop", "-o", "jsonpath={.containers[0].decision}"}},
		{"MemorySnapshot\n", []string{"map", "web-7d9f8", "-n", "inside", "-o", "jsonpath={.kind}"}},
		{"inside web-7d9f8\n", []string{"why", "web-7d9f8", "-n", "inside", "-o", "jsonpath={.namespace} {.pod}"}},
	} {
		if out, errs, code := c.run("reader", tc.args...); code != 0 || !strings.Contains(out, tc.want) {
			t.Errorf("%q: exit %d, %q, %q; want %q", tc.args, code, out, errs, tc.want)
		}
	}
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"-o csv is not known: use json, yaml, jsonpath=", []string{"explain", "deploy/web", "-o", "csv"}},
		{"-o name is not known: use wide, json", []string{"history", "deploy/web", "-o", "name"}},
		{"-o wide is not known: use svg, html, json", []string{"map", "web-7d9f8", "-o", "wide"}},
		{"--sort-by nope is not known: use urgency, use, kills, name", []string{"status", "--sort-by", "nope"}},
		{"--sort-by .nope: no item has such a field", []string{"status", "--sort-by", ".nope"}},
	} {
		if out, errs, code := c.run("reader", append(tc.args, "-n", "shop")...); code != exitFailed || out != "" ||
			!strings.Contains(errs, tc.want) {
			t.Errorf("%q: exit %d, %q, %q; want %q", tc.args, code, out, errs, tc.want)
		}
	}
}

// clusters asks the one API server by two names, and one that is not there.
func (c server) clusters(t *testing.T) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	only := config.Contexts[config.CurrentContext]
	twin, gone, nowhere := only.DeepCopy(), only.DeepCopy(), config.Clusters[only.Cluster].DeepCopy()
	gone.Cluster, nowhere.Server = "nowhere", "https://127.0.0.1:1"
	config.CurrentContext = "envtest"
	config.Contexts = map[string]*clientcmdapi.Context{"envtest": only, "twin": twin, "gone": gone}
	config.Clusters["nowhere"] = nowhere
	if err := clientcmd.WriteToFile(*config, c.kubeconfig); err != nil {
		t.Fatal(err)
	}

	out, errs, code := c.run("reader", "status", "-n", "shop", "--context", "twin", "--context", "envtest,twin")
	lines := strings.Split(out, "\n")
	if code != 0 || errs != "" || !strings.HasPrefix(lines[0], "CLUSTER   WORKLOAD ") ||
		!strings.HasPrefix(lines[1], "envtest   deployment/web ") ||
		!strings.HasPrefix(lines[2], "twin      deployment/web ") {
		t.Errorf("exit %d, %q,\n%s", code, errs, out)
	}
	if !strings.Contains(out, "For Git: kubectl memfit export --context envtest -n shop deployment/web") {
		t.Errorf("a command that is copied may end up in another cluster:\n%s", out)
	}
	out, errs, code = c.run("reader", "top", "-n", "inside", "--context", "gone,twin", "--request-timeout", "20s")
	if code != exitFailed || !strings.Contains(errs, "context gone: listing pods") ||
		!strings.Contains(out, "\ntwin      web-7d9f8") {
		t.Errorf("one of two cannot be read: exit %d, %q,\n%s", code, errs, out)
	}
	if out, _, code := c.run(
		"reader", "scan", "-n", "inside", "--context", "envtest,twin", "-o", "jsonpath={.items[*].cluster}",
	); code != 0 || out != "envtest twin\n" {
		t.Errorf("for machines: exit %d, %q", code, out)
	}
	for want, args := range map[string][]string{
		"this command reads one cluster: name one --context": {"explain", "deploy/web", "--context", "envtest,twin"},
		"--write is about one cluster: name one --context":   {"scan", "--write", "x", "--context", "envtest,twin"},
		"context was not found for specified context: nope":  {"status", "--context", "envtest,nope"},
		"--context names an empty context":                   {"status", "--context", "envtest,"},
	} {
		if out, errs, code := c.run("reader", args...); code != exitFailed || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d, %q, %q; want %q", args, code, out, errs, want)
		}
	}
}

// sofar is what a command that goes on has printed so far.
type sofar struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *sofar) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// within waits until something is printed that was not before, and returns all of it.
func (s *sofar) within(t *testing.T, want string) string {
	t.Helper()
	for range 600 {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		if strings.Contains(text, want) {
			return text
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%q is not printed:\n%s", want, s.text.String())
	return ""
}

func (c server) watches(t *testing.T) {
	t.Helper()
	if _, errs, code := c.run("reader", "status", "-n", "shop", "--watch"); code != exitFailed ||
		!strings.Contains(errs, "you may not watch memoryrecommendations.memfit.dev: ask for the right (ClusterRole "+
			"memfit-memoryrecommendation-viewer-role has it)") {
		t.Errorf("without the right: exit %d, %q", code, errs)
	}
	watcher := &rbacv1.ClusterRole{
		ObjectMeta: build.Namespace("watcher").ObjectMeta,
		Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
			},
		},
	}
	c.create(t, watcher, &rbacv1.ClusterRoleBinding{
		ObjectMeta: watcher.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "watcher"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "watcher"}},
	})
	for range 100 { // the API server learns of it by its own watch
		if _, _, code := c.run("watcher", "status", "-n", "shop"); code == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errs sofar
	cmd := root()
	cmd.SetArgs([]string{"status", "-n", "shop", "-w", "--kubeconfig", c.kubeconfig, "--as", "watcher"})
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	before := out.within(t, "cronjob/report")

	var rec v1alpha1.MemoryRecommendation
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "daemonset-agent"}, &rec); err != nil {
		t.Fatal(err)
	}
	rec.Status.OOMKills = 41
	if err := c.client.Status().Update(ctx, &rec); err != nil {
		t.Fatal(err)
	}
	after := out.within(t, "41")
	added := strings.Split(strings.TrimPrefix(after, before), "\n")
	lines := strings.Split(before, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "daemonset/agent") })
	if !strings.HasPrefix(after, before) || len(added) != 2 || at < 0 ||
		added[0] != strings.Replace(lines[at], " 0 ", " 41", 1) {
		t.Errorf("printed\n%s\nthen %q, and not the changed line below its column", before, added)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("interrupted: %v", err)
	}
}
