// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
	"github.com/memfit/memfit/test/tree"
)

// server is a real API server, seen as somebody who may get and list, and nothing else: more the verbs must never need.
type server struct {
	client     client.Client
	kubeconfig string
}

// newServer starts without memfit's CRDs; the returned function installs them.
func newServer(t *testing.T) (server, func()) {
	t.Helper()
	var env *envtest.Environment
	config := expect.APIServer(
		t, func(e *envtest.Environment) { env, e.CRDDirectoryPaths, e.ErrorIfCRDPathMissing = e, nil, false },
	)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := server{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := os.WriteFile(c.kubeconfig, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	c.create(t,
		&rbacv1.ClusterRole{
			ObjectMeta: build.Namespace("reader").ObjectMeta,
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: build.Namespace("reader").ObjectMeta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "reader"}},
		},
		build.Namespace("shop"), build.Namespace("tools"), build.Namespace("empty"))
	return c, func() {
		t.Helper()
		_, err := envtest.InstallCRDs(
			config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(tree.Root(), "config", "crd", "bases")}},
		)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (c server) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a verb as user.
func (c server) run(user string, args ...string) (stdout, stderr string, code int) {
	verb, rest := args[0], args[1:]
	return run("", append([]string{verb, "--kubeconfig", c.kubeconfig, "--as", user}, rest...)...)
}

// fill brings the shop of the report's and the export's tests to life.
func (c server) fill(t *testing.T) {
	t.Helper()
	for _, doc := range documents(t, "internal/export/testdata/objects.yaml") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.GetKind() != "Rollout" { // its CRD is not here
			c.create(t, u)
		}
	}
	for _, doc := range documents(t, "internal/report/testdata/shop.yaml") {
		c.recommend(t, doc)
	}
}

// recommend writes a recommendation as memfit would.
func (c server) recommend(t *testing.T, doc string) {
	t.Helper()
	var rec v1alpha1.MemoryRecommendation
	if err := yaml.Unmarshal([]byte(doc), &rec); err != nil {
		t.Fatal(err)
	}
	status := rec.Status
	rec.ManagedFields = nil
	c.create(t, &rec)
	rec.Status = status
	if err := c.client.Status().Update(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
}

// refuses: the API server refuses the profiles of internal/offline's test; there is no webhook here.
func (c server) refuses(t *testing.T) {
	for _, doc := range documents(t, "internal/offline/testdata/profiles.yaml") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		err := client.WithFieldValidation(c.client, metav1.FieldValidationStrict).Create(t.Context(), u, client.DryRunAll)
		if want := strings.HasPrefix(doc, "# schema:"); want != (err != nil) {
			t.Errorf("%s\nrefused with %v, want %t", doc, err, want)
		}
	}
}

func documents(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n---\n")
}

// TestCluster tells a story against one API server, because starting one takes longer than everything else here.
func TestCluster(t *testing.T) {
	c, install := newServer(t)

	t.Run("without memfit", func(t *testing.T) {
		for _, verb := range [][]string{{"status"}, {"explain", "web"}, {"export"}} {
			if out, errs, code := c.run("reader", verb...); code != exitFailed || out != "" ||
				!strings.Contains(errs, "memfit is not installed: kubectl apply --server-side") {
				t.Errorf("%v: exit %d, %q, %q", verb, code, out, errs)
			}
		}
	})
	install()

	t.Run("the schema that inject applies to files", c.refuses)

	t.Run("without rights", func(t *testing.T) {
		for want, verb := range map[string][]string{
			"kubectl -n shop create rolebinding memfit-view --clusterrole=memfit-memoryrecommendation-viewer-role": {"status",
				"-n", "shop"},
			"you may not list memoryrecommendations.memfit.dev in all namespaces: name one with -n": {"status",
				"-A"},
		} {
			if out, errs, code := c.run("nobody", verb...); code != exitFailed || out != "" || !strings.Contains(errs, want) {
				t.Errorf("%v: exit %d, %q, %q; want %q", verb, code, out, errs, want)
			}
		}
	})

	t.Run("with nothing governed", func(t *testing.T) {
		out, errs, code := c.run("reader", "status", "-n", "empty")
		if code != 0 || out != "" || !strings.Contains(errs, "No workload in namespace empty is governed by memfit") ||
			!strings.Contains(errs, "kind: MemoryProfile") {
			t.Errorf("exit %d, %q, %q", code, out, errs)
		}
		c.create(t, build.ClusterProfile("jvm", v1alpha1.RuntimeJVM), build.Profile("shop", "web", v1alpha1.RuntimeNodeJS))
		if _, errs, _ := c.run("reader", "status", "-n", "empty"); !strings.Contains(
			errs, "an existing profile (ClusterMemoryProfile jvm)",
		) {
			t.Errorf("the cluster's profile is not offered: %q", errs)
		}
		if out, _, code := c.run("reader", "status", "-n", "empty", "-o", "json"); code != 0 ||
			!strings.Contains(out, `"items": []`) {
			t.Errorf("for machines: exit %d, %q", code, out)
		}
		if _, errs, code := c.run("reader", "export", "-n", "empty"); code != exitFailed ||
			!strings.Contains(errs, "nothing can be exported") {
			t.Errorf("export: exit %d, %q", code, errs)
		}
	})
	t.Run("what was learned is exported as an object that can be applied", func(t *testing.T) {
		if _, errs, code := c.run("reader", "export", "priors", "-n", "tools"); code != exitFailed ||
			!strings.Contains(errs, "no learned data in namespace tools") {
			t.Errorf("of another namespace: exit %d, %q", code, errs)
		}
		learned := &v1alpha1.MemoryCheckpoint{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: v1alpha1.PriorsName},
		}
		c.create(t, learned)
		learned.Status = v1alpha1.MemoryCheckpointStatus{
			Version: v1alpha1.CheckpointVersion, Observed: []byte(`{"a/b":{"hours":60.5,"containers":3,"day":20000}}`),
		}
		if err := c.client.Status().Update(t.Context(), learned); err != nil {
			t.Fatal(err)
		}
		out, errs, code := c.run("reader", "export", "priors", "-n", "tools")
		var got v1alpha1.MemoryCheckpoint
		if err := yaml.UnmarshalStrict([]byte(out), &got); err != nil || code != 0 {
			t.Fatalf("exit %d, %q: %v\n%s", code, errs, err, out)
		}
		if text := got.Annotations[v1alpha1.PriorsAnnotation]; got.Namespace != "tools" || got.Name != learned.Name ||
			!strings.Contains(text, `"hours": 60.5`) {
			t.Errorf("got %s", out)
		}
	})
	c.fill(t)

	t.Run("the GitHub Action", func(t *testing.T) { c.exports(t) })
	t.Run("status", func(t *testing.T) {
		out, errs, code := c.run("reader", "status", "-A")
		golden, err := os.ReadFile("internal/report/testdata/status.txt")
		if err != nil {
			t.Fatal(err)
		}
		want, _, _ := strings.Cut(string(golden), "\nProfiles that need attention") // these profiles have no status
		if code != 0 || errs != "" || out != want {
			t.Errorf("exit %d, stderr %q, got\n%s\nwant what the report's own test has:\n%s", code, errs, out, want)
		}
		if out, _, _ := c.run("reader", "status", "-n", "tools"); strings.Contains(out, "deployment/web") ||
			!strings.Contains(out, "pod/debug") {
			t.Errorf("-n tools shows\n%s", out)
		}
	})

	t.Run("status names workloads that ask for a profile and get none", func(t *testing.T) {
		c.create(t, build.Namespace("lost"), build.Deployment("lost", "typo", v1alpha1.ProfileAnnotation, "wbe"),
			build.Deployment("lost", "opted-out", v1alpha1.ProfileAnnotation, "wbe", v1alpha1.InjectAnnotation, "false"),
			build.Deployment("lost", "served", v1alpha1.ProfileAnnotation, "jvm"), build.CronJob("lost", "nobody-asked"))
		out, errs, code := c.run("reader", "status", "-n", "lost")
		want := "Workloads without a clear profile\n  deployment/typo: ProfileNotFound: annotation memfit.dev/profile on " +
			"the Deployment names \"wbe\""
		if code != 0 || !strings.Contains(out, want) || strings.Count(out, "\n") != 3 ||
			!strings.Contains(errs, "No workload in namespace lost is governed") {
			t.Errorf("exit %d, %q, %q; want %q", code, out, errs, want)
		}
		if out, _, _ := c.run(
			"reader", "status", "-n", "lost", "-o", "json",
		); !strings.Contains(out, `"reason": "ProfileNotFound"`) {
			t.Errorf("for machines: %q", out)
		}
		if out, _, _ := c.run("reader", "status", "-A"); !strings.Contains(out, "\n  lost deployment/typo: ProfileNotFound") {
			t.Errorf("-A shows\n%s", out)
		}
		if err := c.client.Delete(t.Context(), build.Namespace("lost")); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("as somebody with rights in one namespace only", func(t *testing.T) {
		for _, namespace := range []string{"shop", "team"} {
			binding := &rbacv1.RoleBinding{
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "tenant"}},
			}
			binding.Name, binding.Namespace = "tenant", namespace
			if namespace == "team" {
				c.create(t, build.Namespace(namespace), build.Profile(namespace, "web", v1alpha1.RuntimeNodeJS))
				c.recommend(
					t, strings.Replace(documents(t, "internal/report/testdata/shop.yaml")[0], "namespace: shop", "namespace: team", 1),
				)
			}
			c.create(t, binding)
		}
		// The API server learns of bindings by its own watch, a moment after it has stored them.
		for _, namespace := range []string{"shop", "team"} {
			for range 100 {
				if _, _, code := c.run("tenant", "status", "-n", namespace); code == 0 {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		if out, errs, code := c.run("tenant", "status", "-n", "team"); code != 0 || errs != "" ||
			!strings.Contains(out, "deployment/web") {
			t.Errorf("nothing there is the cluster's, yet: exit %d, %q, %q", code, out, errs)
		}
		if out, errs, code := c.run("tenant", "status", "-n", "shop"); code != 0 ||
			!strings.Contains(errs, "warning: could not read the status of profiles") ||
			!strings.Contains(out, "statefulset/orders") {
			t.Errorf("a profile of the cluster governs there: exit %d, %q, %q", code, out, errs)
		}
		if out, errs, code := c.run("tenant", "explain", "-n", "shop", "orders"); code != 0 ||
			!strings.Contains(errs, "warning: the bounds of the profile are unavailable") || strings.Contains(out, "Bounds") {
			t.Errorf("explain: exit %d, %q, %q", code, out, errs)
		}
	})

	t.Run("explain", func(t *testing.T) {
		out, errs, code := c.run("reader", "explain", "deploy/web", "-n", "shop")
		for _, want := range []string{
			"OOM-killed at limit 256Mi at 16:08:34Z", "Bounds     limit 16Mi to any size", "MainProcess at limit 256Mi",
			"Applied is False (ModeRecommend)",
		} {
			if code != 0 || errs != "" || !strings.Contains(out, want) {
				t.Errorf("exit %d, stderr %q, %q is not in\n%s", code, errs, want, out)
			}
		}
		for name, want := range map[string]string{
			"web": "several workloads in namespace shop", "nope": "known workloads: cronjob/report",
		} {
			if _, errs, code := c.run("reader", "explain", name, "-n", "shop"); code != exitFailed ||
				!strings.Contains(errs, want) {
				t.Errorf("%s: exit %d, %q", name, code, errs)
			}
		}
		if _, errs, code := c.run("reader", "explain"); code != exitFailed || !strings.Contains(errs, "name one workload") {
			t.Errorf("no name: exit %d, %q", code, errs)
		}
	})

	t.Run("history", func(t *testing.T) {
		out, errs, code := c.run("reader", "history", "deploy/web", "-n", "shop")
		golden, err := os.ReadFile("internal/report/testdata/history-deployment-web.txt")
		if err != nil {
			t.Fatal(err)
		}
		if code != 0 || errs != "" || out != string(golden) {
			t.Errorf("exit %d, stderr %q, got\n%s\nwant\n%s", code, errs, out, golden)
		}
		if out, _, code := c.run("reader", "history", "deploy/web", "-n", "shop", "-o", "json"); code != 0 ||
			!strings.Contains(out, `"kind": "Reverted"`) {
			t.Errorf("for machines: exit %d, %q", code, out)
		}
		if _, errs, code := c.run("reader", "history"); code != exitFailed || !strings.Contains(errs, "name one workload") {
			t.Errorf("no name: exit %d, %q", code, errs)
		}
	})

	t.Run("export", func(t *testing.T) {
		for _, format := range []string{"kustomize", "json6902", "helm-values", "ssa"} {
			first, errs, code := c.run("reader", "export", "-A", "-o", format)
			if code != 0 || !strings.Contains(errs, "Pod tools/debug is left out") ||
				!strings.Contains(errs, `Job tools/import is left out: reading the object: jobs.batch "import" not found`) {
				t.Errorf("%s: exit %d, %q", format, code, errs)
			}
			if second, _, _ := c.run("reader", "export", "-A", "-o", format); first != second {
				t.Errorf("%s: two runs on the same state differ:\n%s\n%s", format, first, second)
			}
		}
		if out, errs, code := c.run("reader", "export", "-n", "shop", "ds/agent"); code != exitFailed ||
			!strings.Contains(out, "# DaemonSet shop/agent is left out") ||
			!strings.Contains(errs, "no container has a recommended size") {
			t.Errorf("nothing to export: exit %d, %q, %q", code, out, errs)
		}
		if _, errs, code := c.run("reader", "export", "-o", "yaml"); code != exitFailed ||
			!strings.Contains(errs, "-o yaml is unknown") {
			t.Errorf("-o yaml: exit %d, %q", code, errs)
		}
	})

	t.Run("what ssa exports, server-side apply takes", func(t *testing.T) {
		out, _, _ := c.run("reader", "export", "-n", "shop", "deploy/web", "-o", "ssa")
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(out), &u.Object); err != nil {
			t.Fatal(err)
		}
		if err := c.client.Apply(
			t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("memfit-export"), client.ForceOwnership,
		); err != nil {
			t.Fatal(err)
		}
		live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
		if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, live); err != nil {
			t.Fatal(err)
		}
		containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
		text, err := yaml.Marshal(containers)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"image: registry.example/cache:1", "image: registry.example/web:1", "cpu: \"1\"", "memory: 512Mi", "memory: 231Mi",
			"memory: 64Mi",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("after the apply, %q is not in\n%s", want, text)
			}
		}
	})

	t.Run("report", func(t *testing.T) {
		checkpoint := &v1alpha1.MemoryCheckpoint{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-web"},
			Status: v1alpha1.MemoryCheckpointStatus{
				Containers: []v1alpha1.CheckpointContainer{{Name: "app", History: []byte("of another version")}},
			},
		}
		status := checkpoint.Status
		c.create(t, checkpoint)
		checkpoint.Status = status
		if err := c.client.Status().Update(t.Context(), checkpoint); err != nil {
			t.Fatal(err)
		}
		out, errs, code := c.run("reader", "report", "-n", "shop", "--price-per-gib-month", "3")
		if code != 0 || !strings.Contains(out, "<td>231Mi</td>") || !strings.Contains(out, "USD a month") ||
			!strings.Contains(errs, "1 container without charts: another version of memfit") {
			t.Errorf("exit %d, %q, %s", code, errs, out)
		}
		if _, errs, code := c.run("tenant", "report", "-n", "shop"); code != 0 || strings.Contains(errs, "profile") {
			t.Errorf("without the right to read the cluster's profiles: exit %d, %q", code, errs)
		}
		if _, errs, code := c.run("reader", "report", "--price-per-gib-month", "-1"); code != exitFailed ||
			!strings.Contains(errs, "set the monthly price of 1 GiB") {
			t.Errorf("exit %d, %q", code, errs)
		}
	})

	t.Run("map, top and scan", func(t *testing.T) { c.inside(t) })
	t.Run("why, after the pods have finished", func(t *testing.T) { c.finished(t) })
	t.Run("formats", func(t *testing.T) { c.formats(t) })

	t.Run("completion", func(t *testing.T) {
		as := []string{"--kubeconfig", c.kubeconfig, "--as", "reader"}
		complete := func(words ...string) []string {
			out, _, _ := run("", slices.Concat(arguments([]string{"/usr/local/bin/" + completer}), words[:1], as, words[1:])...)
			var names []string
			for text := range strings.Lines(out) {
				name, _, _ := strings.Cut(strings.TrimSpace(text), "\t")
				names = append(names, name)
			}
			return names
		}
		for _, tc := range []struct{ words, want []string }{
			{[]string{"explain", "-n", "tools", ""}, []string{"job/import", "pod/debug", ":4"}},
			{[]string{"explain", "-n", "tools", "de"}, []string{"debug", ":4"}},
			{[]string{"explain", "-n", "tools", "pod/debug", ""}, []string{":4"}},
			{[]string{"export", "-n", "tools", "pod/debug", ""}, []string{"job/import", ":4"}},
			{[]string{"export", "-o", ""}, []string{"kustomize", "json6902", "helm-values", "ssa", ":4"}},
			{[]string{"status", "-n", "sh"}, []string{"shop", ":4"}},
			{[]string{"explain", "shop", "-n", "sh"}, []string{"shop", ":4"}},
			{[]string{"status", "-o", "j"}, []string{"json", "jsonpath=", ":4"}},
			{[]string{"status", "-o", "jsonp"}, []string{"jsonpath=", ":6"}},
			{[]string{"top", "--sort-by", "un"}, []string{"unexplained", ":4"}},
			{[]string{"why", "-n", "inside", ""}, []string{"pod/web-7d9f8", ":4"}},
			{[]string{"status", "--context", "env"}, []string{"envtest", ":4"}},
		} {
			if got := complete(tc.words...); !slices.Equal(got, tc.want) {
				t.Errorf("%q completes to %q, want %q", tc.words, got, tc.want)
			}
		}
	})
}

func TestArguments(t *testing.T) {
	for command, want := range map[string]string{
		"kubectl-memfit": "status", "/opt/bin/kubectl_complete-memfit": "__complete status",
		"kubectl_complete-memfit.exe": "__complete status",
	} {
		if got := strings.Join(arguments([]string{command, "status"}), " "); got != want {
			t.Errorf("%s status runs %q, want %q", command, got, want)
		}
	}
}
