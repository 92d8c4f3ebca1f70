// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/test/budget"
)

const goProfile = `apiVersion: memfit.dev/v1alpha1
kind: MemoryProfile
metadata: {name: web, namespace: shop}
spec:
  runtime: {type: Go}
  tuning: {resizePolicy: Keep}
`

// offline injects and returns the stream.
func offline(t *testing.T, manifests string, o Options) (*Result, string) {
	t.Helper()
	r, err := Inject([]byte(manifests), o)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(r.YAML())
}

func withProfile() Options { return Options{Namespace: "shop", Profiles: []byte(goProfile)} }

func TestEveryKindOfWorkload(t *testing.T) {
	template := func(indent string) string {
		return strings.ReplaceAll(`
spec:
  containers:
    - name: app
      resources:
        limits:
          memory: 512Mi
`, "\n", "\n"+indent)
	}
	for kind, manifest := range map[string]string{
		"Pod":                   "apiVersion: v1\nkind: Pod" + template(""),
		"PodTemplate":           "apiVersion: v1\nkind: PodTemplate\ntemplate:" + template("  "),
		"ReplicationController": "apiVersion: v1\nkind: ReplicationController\nspec:\n  template:" + template("    "),
		"Deployment":            "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:" + template("    "),
		"StatefulSet":           "apiVersion: apps/v1\nkind: StatefulSet\nspec:\n  template:" + template("    "),
		"DaemonSet":             "apiVersion: apps/v1\nkind: DaemonSet\nspec:\n  template:" + template("    "),
		"ReplicaSet":            "apiVersion: apps/v1\nkind: ReplicaSet\nspec:\n  template:" + template("    "),
		"Job":                   "apiVersion: batch/v1\nkind: Job\nspec:\n  template:" + template("    "),
		"CronJob": "apiVersion: batch/v1\nkind: CronJob\nspec:\n  jobTemplate:\n    spec:\n      template:" +
			template("        "),
		"Rollout": "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nspec:\n  template:" + template("    "),
	} {
		t.Run(kind, func(t *testing.T) {
			r, out := offline(t, manifest, withProfile())
			if r.Changed != 1 || !strings.Contains(out, "name: GOMEMLIMIT") || !strings.Contains(out, "memfit.dev/injected:") {
				t.Errorf("changed %d:\n%s", r.Changed, out)
			}
		})
	}
}

func TestWhatIsNotOursPassesThroughByteForByte(t *testing.T) {
	for name, manifests := range map[string]string{
		"nothing":       "",
		"only comments": "# nothing here\n\n---\n# nor here\n",
		"an unknown kind, oddly written": "kind:   Widget\napiVersion: example.test/v1\nspec: {a:   [1,2],  b: !!str 3}   " +
			"# kept\n",
		"no newline at the end": "kind: Widget\napiVersion: example.test/v1",
		"Windows line ends":     "kind: Widget\r\napiVersion: example.test/v1\r\n---\r\nkind: Other\r\n",
		"markers with comments": "--- # first\nkind: A\n---\n\n---   \nkind: B\n",
		"a workload that opts out": "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations: {memfit.dev/inject:   " +
			"\"false\"}\nspec: {containers: [{name: a,  resources: {limits: {memory: 1Gi}}}]}\n",
		"a kind that only sounds alike": "apiVersion: serving.example.test/v1\nkind: Deployment\nspec: {template: {spec: " +
			"{containers: [{name:   a}]}}}\n",
		"text that looks like a marker": "kind: Widget\ndata: |\n  ---\n  --- x\n",
		"text on the marker's line":     "kind: A\n--- {kind: B} # b\n--- !!map\nkind: C\n---\tkind: D\n",
		"a directive":                   "# x\n%YAML 1.1\n---\nkind: A\n",
		"an end marker":                 "kind: A\n...\n---\nkind: B\n...\n# bye\n",
		"no marker":                     "kind: Widget\n---a: b\n",
		"a JSON object":                 "{\"kind\":   \"Widget\",\n\"n\": 1e3}\n",
	} {
		t.Run(name, func(t *testing.T) {
			r, out := offline(t, manifests, withProfile())
			if out != manifests {
				t.Errorf("(-in +out):\n%s", cmp.Diff(manifests, out))
			}
			if diff, err := r.Diff(); err != nil || len(diff) > 0 {
				t.Errorf("diff of nothing: %q, %v", diff, err)
			}
		})
	}
}

func TestCommentsOrderAndUnknownFieldsStay(t *testing.T) {
	in := `# the shop
kind: Deployment # first the kind
apiVersion: apps/v1
metadata: {namespace: shop, name: web}
spec:
  template:
    spec:
      futureField: {b: 1, a: 2}
      nodeSelector:
      containers:
        # the app
        - resources: {limits: {memory: 512Mi}}
          name: app
          env:
            # the port
            - {name: PORT, value: "80"} # http
          futureContainerField: yes-please
        - name: side
---
kind: Service
apiVersion: v1
`
	want := `# the shop
kind: Deployment # first the kind
apiVersion: apps/v1
metadata: {namespace: shop, name: web}
spec:
  template:
    spec:
      futureField: {b: 1, a: 2}
      nodeSelector:
      containers:
        # the app
        - resources: {limits: {memory: 512Mi}}
          name: app
          env:
            # the port
            - {name: PORT, value: "80"} # http
            - name: GOMEMLIMIT
              value: "483183820"
          futureContainerField: yes-please
        - name: side
    metadata:
      annotations:
        memfit.dev/injected: '{"v":1,"profile":"MemoryProfile/web","generation":1,"containers":{"app":{"limit":"512Mi","owner":{"limit":"512Mi"},"program":"00bf3628246fb18d","runtime":"Go (declared by the profile)","set":{"GOMEMLIMIT":"483183820"}},"side":{"limitFrom":"no limit","program":"2e89242302a26422","runtime":"Go (declared by the profile)","skipped":{"GOMEMLIMIT":"the container has no memory limit to derive it from: set resources.limits.memory, and new pods get GOMEMLIMIT"}}}}'
---
kind: Service
apiVersion: v1
`
	if _, out := offline(t, in, withProfile()); out != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, out))
	}
}

// TestWhatWasInjectedIsTakenBack: with tuning.mode Disabled, a file that was injected becomes what it was, a changed
// value with its comment.
func TestWhatWasInjectedIsTakenBack(t *testing.T) {
	const in = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
    - name: app
      env:
        - {name: JAVA_TOOL_OPTIONS, value: -Da=b} # ours
      resources: {limits: {memory: 512Mi}}
    - name: side
      resources: {limits: {memory: 1Gi}}
`
	profile := func(tuning string) Options {
		text := strings.Replace(goProfile, "{resizePolicy: Keep}", tuning, 1)
		return Options{Namespace: "shop", Profiles: []byte(strings.Replace(text, "type: Go", "type: JVM", 1))}
	}
	_, injected := offline(t, in, profile("{heapPercent: 60}"))
	for _, want := range []string{"-Da=b'} # ours", "resizePolicy:", "value: -XX:"} {
		if !strings.Contains(injected, want) {
			t.Errorf("no %s in\n%s", want, injected)
		}
	}
	if _, out := offline(t, injected, profile("{mode: Disabled}")); out != in {
		t.Errorf("(-want +got):\n%s", cmp.Diff(in, out))
	}
}

func TestSharedAnchorsAreNotChangedForOthers(t *testing.T) {
	in := `apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - name: app
      env: &common
        - {name: A, value: b}
      resources: &size {limits: {memory: 512Mi}}
    - name: side
      env: *common
      resources: *size
    - name: ignored
      env: *common
`
	ignoring := strings.Replace(goProfile, "tuning:", "containers: [{name: ignored, mode: Ignored}]\n  tuning:", 1)
	r, out := offline(t, in, Options{Namespace: "shop", Profiles: []byte(ignoring)})
	pod := podOf(t, []byte(out))
	for i, want := range []int{2, 2, 1} {
		// The anchor is the app's own list, so what is added there would reach "ignored" through the alias.
		if got := len(pod.Spec.Containers[i].Env); got != want {
			t.Errorf("container %s has %d variables, want %d:\n%s", pod.Spec.Containers[i].Name, got, want, out)
		}
	}
	if r.Changed != 1 {
		t.Errorf("changed %d, want 1", r.Changed)
	}
}

// TestMergeKeysAreWrittenOut: a change in what is merged would reach every other place that merges it.
func TestMergeKeysAreWrittenOut(t *testing.T) {
	in := `apiVersion: v1
kind: Pod
common: &size
  resources: {limits: {memory: 512Mi, cpu: "1"}}
  image: merged
pod: &pod
  containers:
    - <<: [{image: nearest}, *size]
      name: app
    - name: own
      image: own
      <<: *size
spec:
  <<: *pod
  restartPolicy: Never
`
	r, out := offline(t, in, withProfile())
	pod := podOf(t, []byte(out))
	if r.Changed != 1 || len(pod.Spec.Containers) != 2 || pod.Spec.RestartPolicy != "Never" {
		t.Fatalf("changed %d:\n%s", r.Changed, out)
	}
	for i, image := range []string{"nearest", "own"} {
		c := pod.Spec.Containers[i]
		if len(c.Env) != 1 || c.Image != image || c.Resources.Limits.Cpu().String() != "1" {
			t.Errorf(
				"container %s: image %q, want %q; env %v; limits %v\n%s", c.Name, c.Image, image, c.Env, c.Resources.Limits, out,
			)
		}
	}
	if strings.Contains(out, "<<") {
		t.Errorf("a merge key is left:\n%s", out)
	}
}

// TestWhatStandsBesideAChangedDocumentIsNotLost: kubectl apply reads what comes out, and an object that is gone is
// gone.
func TestWhatStandsBesideAChangedDocumentIsNotLost(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: app\n    resources: {limits: {memory: " +
		"512Mi}}\n"
	for _, in := range []string{
		pod + "--- {kind: Service}\n",
		"--- {kind: Service}\n---\n" + pod,
		pod + "...\n---\nkind: Service\n",
		"%YAML 1.1\n---\nkind: Service\n---\n" + pod,
	} {
		r, out := offline(t, in, withProfile())
		if r.Changed != 1 || !strings.Contains(out, "GOMEMLIMIT") || !strings.Contains(out, "kind: Service") {
			t.Errorf("%q\nbecame\n%s", in, out)
		}
	}
	if _, out := offline(
		t, strings.ReplaceAll(pod, "\n", "\r\n"), withProfile(),
	); strings.Count(out, "\n") != strings.Count(out, "\r\n") || !strings.Contains(out, "GOMEMLIMIT") {
		t.Errorf("Windows line ends did not stay: %q", out)
	}
}

func TestNothingStaysNothing(t *testing.T) {
	_, out := offline(
		t,
		"apiVersion: v1\nkind: Pod\nspec: {volumes: , containers: [{name: app, Env: 5, resources: {limits: {memory: "+
			"512Mi}}}]}\n",
		withProfile(),
	)
	if !strings.Contains(out, "volumes: null,") || !strings.Contains(out, "GOMEMLIMIT") {
		t.Errorf("an empty value became something else, or a misspelt field was read:\n%s", out)
	}
}

func TestDatesStayText(t *testing.T) {
	root, err := split([]byte("kind: A\nmetadata: {annotations: {built: 2024-01-01}}\n"))[0].tree()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := appendJSON(nil, root); err != nil || !strings.Contains(string(text), `"built":"2024-01-01"`) {
		t.Errorf("%v\n%s", err, text)
	}
}

// injectBudget is what reading manifests, changing them and writing them may take. A value of two bytes becomes a tree,
// twice, JSON and text. Aliases stand for ten times what is written
// and 10,000 values more.
var injectBudget = budget.Budget{Bytes: 64 << 20, PerByte: 24 << 10, CPU: 5 * time.Second}

// written injects and writes, within the budget.
func written(t testing.TB, manifests string) (r *Result, out []byte, err error) {
	t.Helper()
	budget.Check(t, injectBudget, len(manifests), func() {
		if r, err = Inject([]byte(manifests), withProfile()); err == nil {
			out = r.YAML()
		}
	})
	return r, out, err
}

// bomb is YAML whose aliases stand for ten to the power of so many values.
func bomb(levels int) string {
	text := "a0: &a0 [" + strings.Repeat("x, ", 9) + "x]\n"
	for i := 1; i < levels; i++ {
		alias := fmt.Sprintf("*a%d, ", i-1)
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.Repeat(alias, 10))
	}
	return text
}

const aPod = "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: app, resources: {limits: {memory: 512Mi}}}]}\n"

// TestHostileManifestsAreBounded: a pipeline injects what another party wrote.
func TestHostileManifestsAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ manifest, want string }{
		"aliases, some":      {manifest: aPod + bomb(3)},
		"aliases, a million": {manifest: aPod + bomb(6), want: "expanded aliases included"},
		"one key, many times": {
			manifest: aPod + "a: {" + strings.Repeat("a,", 10_000) + "}\n",
			want:     `line 4: duplicate key "a", first used in line 4: remove one of them`,
		},
		"many keys":      {manifest: aPod + "a: {" + numbered(10_000) + "}\n"},
		"many documents": {manifest: strings.Repeat("---\n", 10_000)},
		"deep": {
			manifest: aPod + "a: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000), want: "more than 1000 levels deep",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, out, err := written(t, c.manifest)
			if err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(r.Problems, "; ")
			if (c.want == "") != (problems == "") || !strings.Contains(problems, c.want) || len(problems) > 250 {
				t.Errorf("problems %.300q, want one with %q", problems, c.want)
			}
			if problems != "" && string(out) != c.manifest {
				t.Error("a document that cannot be read did not pass through")
			}
		})
	}
}

func numbered(n int) string {
	var keys strings.Builder
	for i := range n {
		fmt.Fprintf(&keys, "k%d, ", i)
	}
	return keys.String()
}

// FuzzInject: whatever is in the file, nothing falls over, it stays within the budget, and what comes out can be read.
func FuzzInject(f *testing.F) {
	f.Add(aPod + bomb(4))
	f.Add(aPod + "a: {a, a}\n")
	f.Add(
		"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: app\n    env: [{name: A}]\n    resources: {limits: " +
			"{memory: 512Mi}}\n",
	)
	f.Add("a: &a {b: [*a]}\n--- # c\n<<: {kind: List}\nitems: [{<<: *a}, 5]\n")
	f.Add(
		"apiVersion: v1\nkind: List\nitems:\n- apiVersion: apps/v1\n  kind: Deployment\n  spec: {template: {spec: " +
			"{containers: [{name: a}, {name: b, <<: {env: [], resources: {limits: {memory: 1Gi}}}}]}}}\n",
	)
	f.Add(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","resources":{"limits":{"memory":"1Gi"}}}]}}`)
	_, _, _ = written(f, aPod) // what is made once per process is no part of the budget
	f.Fuzz(func(t *testing.T, manifests string) {
		r, out, err := written(t, manifests[:min(len(manifests), 64<<10)])
		if err != nil || len(manifests) > 64<<10 {
			return
		}
		if r.Changed == 0 {
			if string(out) != manifests {
				t.Fatalf("nothing changed, and yet %q became %q", manifests, out)
			}
			return
		}
		if _, err := Inject(out, withProfile()); err != nil {
			t.Fatalf("%q became %q, which cannot be read: %v", manifests, out, err)
		}
	})
}

func TestAListInJSONStaysJSON(t *testing.T) {
	in := `{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}},
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "resources": {"limits": {"memory": "512Mi"}}}]}}
]}
`
	_, out := offline(t, in, withProfile())
	if !strings.HasPrefix(out, "{\n") || !strings.Contains(out, `"value": "483183820"`) {
		t.Errorf("JSON must stay JSON and be injected:\n%s", out)
	}
}

func TestWhichProfileGoverns(t *testing.T) {
	const pod = "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop%s}\nspec: {containers: [{name: " +
		"app, resources: {limits: {memory: 512Mi}}}]}\n"
	manifest := func(metadata string) string { return strings.Replace(pod, "%s", metadata, 1) }
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, annotations: {memfit.dev/profile: web}}"
	for name, tc := range map[string]struct {
		manifests   string
		options     Options
		wantChanged int
		wantProblem string
	}{
		"none": {manifests: manifest("")},
		"the only one of the profile file": {
			manifests: manifest(""), options: Options{Profiles: []byte(goProfile)}, wantChanged: 1,
		},
		"of another namespace, asked for": {
			manifests:   manifest(", annotations: {memfit.dev/profile: web}"),
			options:     Options{Profiles: []byte(strings.Replace(goProfile, ", namespace: shop", ", namespace: other", 1))},
			wantChanged: 1,
		},
		"by annotation, in the manifests": {
			manifests: goProfile + manifest(", annotations: {memfit.dev/profile: web}"), wantChanged: 1,
		},
		"not asked for, in the manifests": {manifests: goProfile + manifest("")},
		"by the namespace's annotation":   {manifests: goProfile + "---\n" + namespace + manifest(""), wantChanged: 1},
		"opted out": {
			manifests: manifest(", annotations: {memfit.dev/inject: \"false\"}"), options: Options{Profiles: []byte(goProfile)},
		},
		"a profile that is not there": {
			manifests:   manifest(", annotations: {memfit.dev/profile: nope}"),
			wantProblem: `Pod shop/a: annotation memfit.dev/profile on the pod template names "nope"`,
		},
		"another one than the only one": {
			manifests: manifest(", annotations: {memfit.dev/profile: nope}"), options: Options{Profiles: []byte(goProfile)},
			wantProblem: `names "nope"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Inject([]byte(tc.manifests), tc.options)
			if err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(r.Problems, "\n")
			if r.Changed != tc.wantChanged || !strings.Contains(problems, tc.wantProblem) ||
				(tc.wantProblem == "") != (problems == "") {
				t.Errorf("changed %d, problems %q; want %d, %q", r.Changed, problems, tc.wantChanged, tc.wantProblem)
			}
		})
	}
}

// TestSizesComeInOneOrder: equal manifests give equal bytes, so that a pipeline has no changes without a reason.
func TestSizesComeInOneOrder(t *testing.T) {
	manifests := strings.Replace(goProfile, "spec:", "spec:\n  sizing: {mode: OnCreate}", 1) + `---
apiVersion: memfit.dev/v1alpha1
kind: MemoryRecommendation
metadata: {name: pod-a, namespace: shop}
status:
  workload: {apiVersion: v1, kind: Pod, name: a}
  containers:
  - {container: app, decision: Increase, newPods: {limit: 512Mi, request: 300Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: shop, annotations: {memfit.dev/profile: web}}
spec:
  containers:
    - name: app
`
	const want = `
      resources:
        limits:
          memory: 512Mi
        requests:
          memory: 300Mi
`
	for range 20 {
		if _, out := offline(t, manifests, Options{}); !strings.Contains(out, want) {
			t.Fatalf("got\n%s\nwant in it%s", out, want)
		}
	}
}

// TestASizeForAClassOfNodesIsNotForAllNodes: a DaemonSet has one template for the pods of all classes, and the webhook
// gives each pod the size of the class of its node.
func TestASizeForAClassOfNodesIsNotForAllNodes(t *testing.T) {
	manifests := strings.Replace(goProfile, "spec:", "spec:\n  sizing: {mode: OnCreate}", 1) + `---
apiVersion: memfit.dev/v1alpha1
kind: MemoryRecommendation
metadata: {name: nodeclass-log-m5-large, namespace: shop}
status:
  workload: {apiVersion: apps/v1, kind: DaemonSet, name: log}
  identity: {platform: nodeclass, labels: [node.kubernetes.io/instance-type], values: [log, m5.large]}
  containers:
  - {container: app, decision: Increase, newPods: {limit: 512Mi, request: 300Mi}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: log, namespace: shop, annotations: {memfit.dev/profile: web}}
spec: {template: {spec: {containers: [{name: app}]}}}
`
	if r, out := offline(t, manifests, Options{}); strings.Count(out, "512Mi") != 1 || len(r.Problems) > 0 {
		t.Errorf("problems %q, and the size of one class is in\n%s", r.Problems, out)
	}
}

// TestDefaultsInFiles: profiles with role Defaults govern nothing and give the others what they leave open, wherever in
// the files they stand.
func TestDefaultsInFiles(t *testing.T) {
	const pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop%s}\n" +
		"spec: {containers: [{name: app, resources: {limits: {memory: 100Mi}}}]}"
	defaults := func(kind, name string, percent int) string {
		return fmt.Sprintf(
			"---\napiVersion: memfit.dev/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: shop}\nspec: {role: Defaults, "+
				"tuning: {heapPercent: %d}}\n", kind, name, percent,
		)
	}
	plain := fmt.Sprintf(pod, "")
	cluster, own := defaults("ClusterMemoryProfile", "platform", 50), defaults("MemoryProfile", "team", 60)
	for what, tc := range map[string]struct{ manifests, profiles, want, note, problem string }{
		"none": {manifests: plain, profiles: goProfile, want: `value: "94371840"`},
		"of the cluster, in the profile file": {
			manifests: plain, profiles: goProfile + cluster, want: `value: "52428800"`,
		},
		"of the namespace, in the manifests": {
			manifests: own + plain, profiles: goProfile + cluster, want: `value: "62914560"`,
		},
		"two of one scope": {
			manifests: own + defaults("MemoryProfile", "b", 70) + plain, profiles: goProfile, want: `value: "73400320"`,
			note: "MemoryProfile shop/team: has no effect, because MemoryProfile shop/b",
		},
		"asked for by name": {
			manifests: own + fmt.Sprintf(pod, ", annotations: {memfit.dev/profile: team}"),
			problem:   "shop/team, which governs no pod",
		},
		"alone in the profile file, governing": {manifests: plain, profiles: own, note: "no profile governs it"},
	} {
		r, out := offline(t, tc.manifests, Options{Profiles: []byte(tc.profiles)})
		notes, problems := strings.Join(r.Notes, "\n"), strings.Join(r.Problems, "\n")
		if (tc.want == "") != (r.Changed == 0) || !strings.Contains(out, tc.want) {
			t.Errorf("%s: want %s in\n%s", what, tc.want, out)
		}
		if !strings.Contains(notes, tc.note) || !strings.Contains(problems, tc.problem) ||
			(tc.problem == "") != (problems == "") {
			t.Errorf("%s: notes %q, problems %q", what, notes, problems)
		}
	}
}

func TestDiffShowsWhatMemfitChangesAndNothingElse(t *testing.T) {
	r, _ := offline(t, `kind: Pod
apiVersion: v1
metadata: {name:   web} # oddly written
spec:
    containers:
    -   name: app
        resources: {limits: {memory: 512Mi}}
`, withProfile())
	want := `--- Pod shop/web
+++ Pod shop/web with memfit
@@ -1,7 +1,10 @@
 kind: Pod
 apiVersion: v1
-metadata: {name: web} # oddly written
+metadata: {name: web, annotations: {memfit.dev/injected: '{"v":1,"profile":"MemoryProfile/web","generation":1,"containers":{"app":{"limit":"512Mi","owner":{"limit":"512Mi"},"program":"2e89242302a26422","runtime":"Go (declared by the profile)","set":{"GOMEMLIMIT":"483183820"}}}}'}} # oddly written
 spec:
   containers:
   - name: app
     resources: {limits: {memory: 512Mi}}
+    env:
+    - name: GOMEMLIMIT
+      value: "483183820"
`
	got, err := r.Diff()
	if err != nil || string(got) != want {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(want, string(got)))
	}
}

// TestOneBadDocumentStopsNoOther: it is named and passes through byte for byte, whatever its kind, and so does what
// memfit does not decide by: a ConfigMap with a key that is written twice is kubectl's business.
func TestOneBadDocumentStopsNoOther(t *testing.T) {
	const twice = "apiVersion: v1\nkind: %s\nmetadata: {name: x, namespace: shop}\ndata: {A: b,   A: c}\n---\n"
	const envFrom = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec:\n  containers:\n" +
		"  - name: app\n    envFrom: [{configMapRef: {name: x}}]\n    resources: {limits: {memory: 512Mi}}\n"
	for name, tc := range map[string]struct{ other, problem string }{
		"a ConfigMap": {other: fmt.Sprintf(twice, "ConfigMap")},
		"a Secret":    {other: fmt.Sprintf(twice, "Secret")},
		"a Namespace": {
			other: "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, annotations: {a: b,   a: 5}}\n---\n",
		},
		"no YAML": {other: "a: [\n---\n", problem: "document 1 is unchanged: yaml: line 1"},
		"a Deployment": {
			other: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: y}\nspec: " +
				"{template: {spec: {containers: 5}}}\n---\n",
			problem: "document 1 is unchanged: Deployment shop/y is invalid",
		},
		"a profile": {
			other:   "apiVersion: memfit.dev/v1alpha1\nkind: MemoryProfile\nmetadata: {name: x}\nspec: {a: 1,   a: 2}\n---\n",
			problem: `document 1 is unchanged: MemoryProfile x: line 4: duplicate key "a"`,
		},
	} {
		r, out := offline(t, tc.other+envFrom, withProfile())
		if !strings.HasPrefix(out, tc.other) || r.Changed != 1 || !strings.Contains(out, "GOMEMLIMIT") {
			t.Errorf("%s: changed %d:\n%s", name, r.Changed, out)
		}
		if problems := strings.Join(r.Problems, "; "); (tc.problem == "") != (problems == "") ||
			!strings.Contains(problems, tc.problem) {
			t.Errorf("%s: problems %q, want %q", name, problems, tc.problem)
		}
	}
	// In a List the other items change.
	list := "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: bad}, spec: 5}\n- " +
		strings.ReplaceAll(envFrom, "\n", "\n  ")
	if r, out := offline(t, list, withProfile()); r.Changed != 1 || len(r.Problems) != 1 ||
		!strings.Contains(r.Problems[0], "Pod shop/bad is invalid") || !strings.Contains(out, "GOMEMLIMIT") {
		t.Errorf("changed %d, problems %q:\n%s", r.Changed, r.Problems, out)
	}
}

// TestAListIsWrittenAsOne: item by item or as a whole, the text is the same, wherever its comments are.
func TestAListIsWrittenAsOne(t *testing.T) {
	const list = `# of the file

# of apiVersion
apiVersion: v1
# of items
items: # behind items
# of the first
- apiVersion: v1
  kind: Pod
  metadata: {name: a}
  spec:
    containers:
    - name: app # behind the name
      args: ["-c", "a\n\nb"]
      command:
      - |
        echo a

        echo b
    # below the containers

# of the second
- apiVersion: v1
  kind: ConfigMap
  data:
    text: |+
      ends in two lines


# of the third, which has a list
- kind: Other
  items:
  - 1
  - 2
# below the items
kind: List
metadata:
  resourceVersion: ""
# below all
`
	for name, text := range map[string]string{
		"kubectl's order": list, "items last": "kind: List\nitems:\n  - a: 1\n\n  # b\n  - b:\n      - 2\n# end\n",
		"items first": "items:\n- a: 1\n- b: 2\n", "one item": "items:\n- a: 1\nkind: List\n", "flow": "items: [a, b]\n",
	} {
		d := &document{raw: []byte(text), line: 1}
		root, err := d.tree()
		if err != nil {
			t.Fatal(err)
		}
		var whole bytes.Buffer
		if err := write(&whole, root, compact(root)); err != nil {
			t.Fatal(err)
		}
		got, err := d.encode(root)
		if diff := cmp.Diff(whole.String(), string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-as a whole +in parts):\n%s", name, err, diff)
		}
	}
}

// TestLargeStreams bounds what a stream of many documents takes: no more than its text is kept, and one tree at a time.
func TestLargeStreams(t *testing.T) {
	var stream strings.Builder
	for i := range 500 {
		fmt.Fprintf(&stream, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web-%d, namespace: shop}\nspec:\n"+
			"  containers:\n  - name: app\n    resources: {limits: {memory: 512Mi}}\n    env:\n", i)
		for j := range 20 {
			fmt.Fprintf(&stream, "    - name: VARIABLE_%d\n      value: some value of %d\n", j, j)
		}
	}
	manifests := []byte(stream.String())
	before := live()
	r, err := Inject(manifests, withProfile())
	if err != nil || r.Changed != 500 {
		t.Fatalf("changed %d, %v", r.Changed, err)
	}
	if kept, allowed := live()-before, 4*len(manifests); kept > allowed {
		t.Errorf("of %d bytes %d are kept, and %d may be", len(manifests), kept, allowed)
	}
	runtime.KeepAlive(r)
}

func live() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestManyVariables: each entry finds its node without a search through the others.
func TestManyVariables(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec:\n  containers:\n  - name: app\n    " +
		"resources: {limits: {memory: 512Mi}}\n    env:\n"
	for name, entry := range map[string]string{"of one name": "    - name: A\n", "of many names": "    - name: A%d\n"} {
		manifests := pod
		if strings.Contains(entry, "%d") {
			var many strings.Builder
			for i := range 60_000 {
				fmt.Fprintf(&many, entry, i)
			}
			manifests += many.String()
		} else {
			manifests += strings.Repeat(entry, 60_000)
		}
		r, out, err := written(t, manifests)
		if err != nil || r.Changed != 1 || strings.Count(string(out), "- name: A") != 60_000 {
			t.Errorf("%s: %v, changed %d, problems %q", name, err, r.Changed, r.Problems)
		}
	}
}

func TestBadInputIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		manifests string
		profiles  string
		want      string
	}{
		"no YAML":             {manifests: "kind: A\n---\na: [", want: "document 2 is unchanged: yaml:"},
		"an alias for itself": {manifests: "a: &a\n  b: *a\n", want: "document 1 is unchanged: the document has more than"},
		"no template": {
			manifests: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
			want:      "document 1 is unchanged: Deployment default/web has no spec.template",
		},
		"a wrong type": {
			manifests: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: 5}\n",
			want:      "Pod default/web is invalid: spec.containers is a number and must be a list",
		},
		"a number for text": {
			manifests: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, env: [{name: A, " +
				"value: 5}]}]}\n",
			want: "spec.containers.env.value is a number and must be text (in quotes)",
		},
		"no size": {
			manifests: "kind: A\n---\n" + "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - " +
				"resources: {limits: {memory: 512MB}}\n",
			want: `line 8: "512MB" is not a quantity: use 512Mi (powers of 1024) or 512M (powers of 1000)`,
		},
		"a place in the file": {
			manifests: "kind: A\n---\nkind: Pod\nfoo: [\n", want: "document 2 is unchanged: yaml: line 4:",
		},
		"text behind the end": {
			manifests: "kind: A\n...\nkind: B\n", want: "document 1 is unchanged: content follows the end",
		},
		"no size in a profile": {
			profiles: strings.Replace(goProfile, "tuning:", "sizing: {limit: {max: 200MB}}\n  tuning:", 1),
			want:     `line 6: "200MB" is not a quantity: use 200Mi (powers of 1024) or 200M (powers of 1000)`,
		},
		"no profile in its file": {profiles: "kind: Pod\n", want: "the profile file has no MemoryProfile"},
		"a bad profile": {
			profiles: "apiVersion: memfit.dev/v1alpha1\nkind: MemoryProfile\nmetadata: {name: web}\nspec: 5\n",
			want:     "profile document 1: MemoryProfile web:",
		},
	} {
		r, err := Inject([]byte(tc.manifests), Options{Profiles: []byte(tc.profiles)})
		if tc.profiles != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v, want %q", name, err, tc.want)
			}
			continue
		}
		if err != nil || !strings.Contains(strings.Join(r.Problems, "; "), tc.want) || string(r.YAML()) != tc.manifests {
			t.Errorf("%s: %v, problems %q, want %q and an unchanged document", name, err, r.Problems, tc.want)
		}
	}
}
