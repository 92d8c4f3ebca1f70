// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraintindex"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/goldenpods"
	"github.com/memfit/memfit/webhooks/pod"
	"github.com/memfit/memfit/webhooks/server"
)

// testHandler is a handler whose metrics can be read.
type testHandler struct {
	*Handler

	registry *prometheus.Registry
}

// handlerOf serves pods with what a cache of these objects would say.
func handlerOf(t testing.TB, objects ...client.Object) *testHandler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for i, o := range objects {
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", i))) // as in a cluster
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	resolver := policy.New(reader, nil)
	if err := resolver.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	injector := &pod.Injector{
		Resolver: resolver, Reader: reader, Metrics: pod.NewMetrics(registry), Clock: clock.RealClock{},
	}
	return &testHandler{NewHandler(injector), registry}
}

// asked is what a handler answers, and the body as it went over the wire.
func asked(t testing.TB, h http.Handler, body []byte) (*admissionv1.AdmissionResponse, string) {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, pod.Path, nil)
	request.Body = server.NewBody(body)
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		t.Fatalf("%d %s: %v", recorder.Code, recorder.Body, err)
	}
	answer.Response.Result = nil // ours has none; to the API server that is the same
	return answer.Response, recorder.Body.String()
}

// TestBothWaysAnswerTheSame: the quick way and the framework's give one answer to every pod of the golden pairs of
// internal/inject, whether or not the quick one had to give up on the way.
func TestBothWaysAnswerTheSame(t *testing.T) {
	files, err := goldenpods.Inputs()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			h, pod, _ := golden(t, file)
			for name, object := range map[string][]byte{
				"as it is":            pod,
				"with an unusual key": bytes.Replace(pod, []byte(`"spec":{`), []byte(`"spec":{"a\"b":1,`), 1),
				"the spec first":      []byte(`{"spec":{},` + string(pod[1:])),
			} {
				quick, wire := asked(t, h, reviewOf(object))
				usual, _ := asked(t, h.usual, reviewOf(object))
				if diff := cmp.Diff(usual, quick); diff != "" {
					t.Errorf("%s: -usual +quick\n%s", name, diff)
				}
				if again, _ := asked(t, h, reviewOf(object)); !cmp.Equal(quick, again) {
					t.Errorf("%s: -first +remembered\n%s", name, cmp.Diff(quick, again))
				}
				if usualText := `"status":`; name == "as it is" && strings.Contains(wire, usualText) {
					t.Errorf("%s: it went the usual way", name)
				}
			}
		})
	}
}

// TestAPodWithoutRoomForTheRecord: with one more annotation the API server would refuse it.
func TestAPodWithoutRoomForTheRecord(t *testing.T) {
	h, pod, _ := golden(t, "../../../internal/inject/testdata/nodejs/node-512.yaml")
	note := func(size int) []byte {
		return bytes.Replace(
			pod, []byte(`"annotations":{`), fmt.Appendf(nil, `"annotations":{"note":%q,`, strings.Repeat("x", size)), 1,
		)
	}
	if got, _ := asked(t, h, reviewOf(note(200<<10))); len(got.Patch) == 0 {
		t.Errorf("there is room for the record: %+v", got)
	}
	if got, _ := asked(t, h, reviewOf(note(256<<10-10))); len(got.Patch) > 0 || len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0], "no room") {
		t.Errorf("there is no room for the record, and yet %+v", got)
	}
}

// counted is what the handler's counter of that name and these labels says.
func counted(t *testing.T, h *testHandler, name string, labels ...string) (value float64) {
	t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			has := func(value string) bool {
				return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == value })
			}
			if family.GetName() == name && !slices.ContainsFunc(labels, func(value string) bool { return !has(value) }) {
				value += m.GetCounter().GetValue()
			}
		}
	}
	return value
}

const (
	reused      = "memfit_admission_reused_total"
	injections  = "memfit_injections_total"
	outOfBounds = "memfit_injection_errors_total"
)

// TestReplicasShareAnOutcome: what is found out for a pod serves those that are like it, and no others.
func TestReplicasShareAnOutcome(t *testing.T) {
	const recommended = "../../../internal/inject/testdata/size-on-create.yaml"
	h, pod, profile := golden(t, recommended)
	ask := func(object []byte) (bool, *admissionv1.AdmissionResponse) {
		before := counted(t, h, reused)
		got, _ := asked(t, h, reviewOf(object))
		again := counted(t, h, reused) - before
		usual, _ := asked(t, h.usual, reviewOf(object))
		if diff := cmp.Diff(usual, got); diff != "" {
			t.Errorf("-usual +got (remembered: %t)\n%s", again > 0, diff)
		}
		return again > 0, got
	}
	changed := func(old, new string) []byte {
		t.Helper()
		if !bytes.Contains(pod, []byte(old)) {
			t.Fatalf("no %s in %s", old, pod)
		}
		return bytes.ReplaceAll(pod, []byte(old), []byte(new))
	}
	if again, got := ask(pod); again || len(got.Patch) == 0 {
		t.Fatalf("the first pod: remembered %t, patch %s", again, got.Patch)
	}
	for name, replica := range map[string][]byte{
		"the same": pod,
		"labels": changed(
			`"metadata":{`, `"metadata":{"generateName":"web-","labels":{"pod-template-hash":"x"},`,
		),
		"somebody's annotation": changed(`"annotations":{`, `"annotations":{"example.com/revision":"7",`),
		"a volume with a token": changed(
			`"spec":{`, `"spec":{"volumes":[{"name":"kube-api-access-x2b4c","projected":{"sources":[]}}],`,
		),
		"a node": changed(`"spec":{`, `"spec":{"nodeName":"a",`),
	} {
		if again, _ := ask(replica); !again {
			t.Errorf("%s: planned again", name)
		}
	}
	for name, other := range map[string][]byte{
		"another limit":       changed(`"memory":"256Mi"`, `"memory":"300Mi"`),
		"another container":   changed(`"name":"app"`, `"name":"other"`),
		"an annotation of us": changed(`"annotations":{`, `"annotations":{"`+v1alpha1.RuntimeAnnotation+`":"JVM",`),
		"a volume in memory": changed(
			`"spec":{`, `"spec":{"volumes":[{"name":"a","emptyDir":{"medium":"Memory","sizeLimit":"64Mi"}}],`,
		),
		"never restarts": changed(`"spec":{`, `"spec":{"restartPolicy":"Never",`),
	} {
		if again, _ := ask(other); again {
			t.Errorf("%s: taken for the same", name)
		}
	}
	full := changed(`"annotations":{`, `"annotations":{"note":"`+strings.Repeat("x", 255<<10+900)+`",`)
	for range 2 {
		if again, got := ask(full); again || bytes.Contains(got.Patch, []byte("GOMEMLIMIT")) || len(got.Warnings) == 0 {
			t.Errorf("annotations are full: remembered %t, patch %s, warnings %q", again, got.Patch, got.Warnings)
		}
	}
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprintf(`{"name":"app-%d","resources":{"limits":{"memory":"512Mi"}}}`, i)
	}
	long := changed(`"containers":[`, `"containers":[`+strings.Join(many, ",")+`,`)
	for range 2 {
		if again, got := ask(long); again || len(got.Patch) < maxResult {
			t.Errorf("a long record: remembered %t, patch of %d bytes", again, len(got.Patch))
		}
	}
	writer, ok := h.injector.Reader.(client.Client)
	if !ok {
		t.Fatal("the fake takes no updates")
	}
	var recs v1alpha1.MemoryRecommendationList
	if err := writer.List(t.Context(), &recs); err != nil || len(recs.Items) != 1 {
		t.Fatalf("%d recommendations: %v", len(recs.Items), err)
	}
	rec := &recs.Items[0]
	*rec.Status.Containers[0].NewPods.Limit = resource.MustParse("3Gi")
	if err := writer.Update(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if again, got := ask(pod); again || !bytes.Contains(got.Patch, []byte(`3Gi`)) {
		t.Errorf("after a new recommendation: remembered %t, patch %s", again, got.Patch)
	}
	profile.Spec.Tuning.Mode = v1alpha1.TuningDisabled
	profile.Generation++ // by an API server
	if err := writer.Update(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	if err := h.injector.Resolver.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, _ := ask(pod); again {
		t.Error("after a change of the profile its old outcome was remembered")
	}
}

// TestWhatIsSeenOfReplicasReachesTheNextPod: in every sizing mode, and although an outcome for the same template is
// remembered.
func TestWhatIsSeenOfReplicasReachesTheNextPod(t *testing.T) {
	h, pod, profile := golden(t, "../../../internal/inject/testdata/nodejs/node-live-heap-raised.yaml")
	writer, ok := h.injector.Reader.(client.Client)
	if !ok {
		t.Fatal("the fake takes no updates")
	}
	updated := func(obj client.Object) {
		t.Helper()
		if err := writer.Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		if err := h.injector.Resolver.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var recs v1alpha1.MemoryRecommendationList
	if err := writer.List(t.Context(), &recs); err != nil || len(recs.Items) != 1 {
		t.Fatalf("%d recommendations: %v", len(recs.Items), err)
	}
	rec := &recs.Items[0]
	patched := func() string {
		got, _ := asked(t, h, reviewOf(pod))
		usual, _ := asked(t, h.usual, reviewOf(pod))
		if diff := cmp.Diff(usual, got); diff != "" {
			t.Errorf("-usual +got\n%s", diff)
		}
		return string(got.Patch)
	}
	capped, sized, reason := "--max-old-space-size=", "768Mi", "with a live heap of up to 420Mi"
	if got := patched(); !strings.Contains(got, capped) || !strings.Contains(got, sized) {
		t.Errorf("the raise makes room for the cap: %s", got)
	}
	profile.Spec.Sizing.Mode = v1alpha1.SizingRecommend
	profile.Generation++
	updated(profile)
	if got := patched(); strings.Contains(got, `"value":"`+capped) || strings.Contains(got, sized) ||
		!strings.Contains(got, reason) {
		t.Errorf("without the raise there is no room: %s", got)
	}
	rec.Status.Containers[0].Evidence.LiveSet = new(resource.MustParse("300Mi"))
	updated(rec)
	if got := patched(); !strings.Contains(got, `"value":"`+capped) {
		t.Errorf("less is alive now: %s", got)
	}
	rec.Status.Containers[0].Evidence.LiveSet = nil
	updated(rec)
	if got := patched(); !strings.Contains(got, `"value":"`+capped) {
		t.Errorf("nothing is known any more: %s", got)
	}
}

// TestDryRunsAreNotCounted, whether or not the outcome is remembered.
func TestDryRunsAreNotCounted(t *testing.T) {
	h, pod, _ := golden(t, "../../../internal/inject/testdata/nodejs/node-512.yaml")
	injected := func(dryRun bool) float64 {
		before := counted(t, h, injections, "Node.js", "injected")
		asked(t, h, bytes.Replace(reviewOf(pod), []byte(`"dryRun":false`), fmt.Appendf(nil, `"dryRun":%t`, dryRun), 1))
		return counted(t, h, injections, "Node.js", "injected") - before
	}
	for i, want := range []float64{0, 1, 0, 1} {
		if got := injected(want == 0); got != want {
			t.Errorf("request %d: counted %v, want %v", i, got, want)
		}
	}
}

// TestConfigMapKeys: with the right to read ConfigMaps, only the names that are in one are left alone; without it, or
// without the ConfigMap, all that might be.
func TestConfigMapKeys(t *testing.T) {
	file := "../../../internal/inject/testdata/nodejs/node-envfrom-known-keys.yaml"
	h, pod, _ := golden(t, file)
	none, _ := asked(t, h, reviewOf(pod))
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app-env"},
		Data:       map[string]string{"PORT": "", "MALLOC_ARENA_MAX": ""},
	}
	reader := fake.NewClientBuilder().WithObjects(settings).Build()
	h.injector.ConfigMaps = reader
	known, _ := asked(t, h, reviewOf(pod))
	if err := reader.Delete(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	gone, _ := asked(t, h, reviewOf(pod))
	if diff := cmp.Diff(none, gone); diff != "" {
		t.Errorf("without the ConfigMap: -no right +the right\n%s", diff)
	}
	if node := []byte(`"value":"--max-old-space-size=`); bytes.Contains(none.Patch, node) ||
		!bytes.Contains(known.Patch, node) {
		t.Errorf(
			"NODE_OPTIONS may come from a ConfigMap that is not read, and cannot from one that is:\n%s\n%s", none.Patch,
			known.Patch,
		)
	}
	if want := `MALLOC_ARENA_MAX\":\"it comes from ConfigMap app-env`; !strings.Contains(string(known.Patch), want) {
		t.Errorf("no %q in %s", want, known.Patch)
	}
}

// golden is a handler that knows the profile and the recommendation of a golden pair, the pair's pod as JSON, and the
// profile.
func golden(t testing.TB, file string) (*testHandler, []byte, *v1alpha1.MemoryProfile) {
	t.Helper()
	pair, err := goldenpods.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return handlerOf(t, pair.Objects()...), pair.Pod, pair.Profile
}

// TestBuffersAreNotMixedUp: what one request says never shows up in the answer to another.
func TestBuffersAreNotMixedUp(t *testing.T) {
	h, pod, _ := golden(t, "../../../internal/inject/testdata/nodejs/node-512.yaml")
	want, _ := asked(t, h, reviewOf(pod))
	if len(want.Patch) == 0 {
		t.Fatal("no patch")
	}
	for i := range 3 {
		other := fmt.Appendf(
			nil, `{"metadata":{"name":"other","labels":{"n":"%s"}},"spec":{"containers":[]}}`, strings.Repeat("x", 3000*i),
		)
		if got, _ := asked(t, h, reviewOf(other)); len(got.Patch) > 0 || len(got.Warnings) > 0 {
			t.Errorf("a pod that nobody governs gets %s, %q", got.Patch, got.Warnings)
		}
		if got, _ := asked(t, h, reviewOf(pod)); !cmp.Equal(want, got) {
			t.Errorf("after another pod the answer differs: %s", cmp.Diff(want, got))
		}
	}
}

// TestOutcomesAndWhatBoundsThem: replicas share an answer while LimitRanges and nodes say the same and quotas have room
// for it.
func TestOutcomesAndWhatBoundsThem(t *testing.T) {
	h, pod, _ := golden(t, "../../../internal/inject/testdata/size-on-create.yaml") // 256Mi, and 512Mi recommended
	room := &constraintindex.Index{}
	h.injector.Constraints = room
	limit := func(step, want string, shared bool) {
		t.Helper()
		before := counted(t, h, reused)
		got, _ := asked(t, h, reviewOf(pod))
		again := counted(t, h, reused) > before
		usual, _ := asked(t, h.usual, reviewOf(pod))
		if diff := cmp.Diff(usual, got); diff != "" {
			t.Errorf("%s: -usual +got\n%s", step, diff)
		}
		if capped := strings.Contains(
			string(got.Patch), `"path":"/spec/containers/0/resources/limits/memory","value":"`+want+`"`,
		); capped == (want == "") || again != shared {
			t.Errorf("%s: want a limit of %q, shared %t (is %t): %s", step, want, shared, again, got.Patch)
		}
	}
	ranges := func(highest string) *corev1.LimitRange {
		l := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bounds"}}
		l.Spec.Limits = []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(highest)}},
		}
		return l
	}
	quota := func(used string, scopes ...corev1.ResourceQuotaScope) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Scopes: scopes},
		}
		q.Status.Hard = corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("2Gi")}
		q.Status.Used = corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse(used)}
		return q
	}
	limit("the first", "512Mi", false)
	limit("the second", "512Mi", true)
	room.Note(ranges("400Mi"))
	limit("under a LimitRange", "400Mi", false)
	limit("the same again", "400Mi", true)
	room.Note(ranges("300Mi"))
	limit("a tighter one", "300Mi", false)
	room.Forget(ranges("300Mi"))
	room.Note(quota("1Gi"))
	limit("none, and a quota with room", "512Mi", true)
	room.Note(quota("1536Mi"))
	limit("with just enough", "512Mi", true)
	room.Note(quota("1600Mi"))
	limit("with too little", "", false)
	limit("which may change with every pod", "", false)
	room.Note(quota("512Mi"))
	limit("with room again", "512Mi", true)
	room.Note(quota("512Mi", corev1.ResourceQuotaScopeNotTerminating))
	limit("one that chooses pods", "512Mi", false)
	limit("is asked for each of them", "512Mi", false)
}

// reviewOf is a request about raw as the API server writes it.
func reviewOf(raw []byte) []byte {
	return fmt.Appendf(
		nil,
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","namespace":"shop","operation":"CREATE","object":%s,"oldObject":null,"dryRun":false}}`,
		raw,
	)
}
