// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/goldenpods"
)

// testHandler is a handler whose metrics can be read.
type testHandler struct {
	*Injector

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
	injector := &Injector{
		Resolver: resolver, Reader: reader, Metrics: NewMetrics(registry), Clock: clock.RealClock{},
	}
	return &testHandler{injector, registry}
}

// asked is what a handler answers.
func asked(t testing.TB, h http.Handler, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		t.Fatalf("%d %s: %v", recorder.Code, recorder.Body, err)
	}
	return answer.Response
}

// TestAPodWithoutRoomForTheRecord: with one more annotation the API server would refuse it.
func TestAPodWithoutRoomForTheRecord(t *testing.T) {
	h, pod, _ := served(t, "../../internal/inject/testdata/nodejs/node-512.yaml")
	note := func(size int) []byte {
		return bytes.Replace(
			pod, []byte(`"annotations":{`), fmt.Appendf(nil, `"annotations":{"note":%q,`, strings.Repeat("x", size)), 1,
		)
	}
	if got := asked(t, h, reviewOf(note(200<<10))); len(got.Patch) == 0 {
		t.Errorf("there is room for the record: %+v", got)
	}
	if got := asked(t, h, reviewOf(note(256<<10-10))); len(got.Patch) > 0 || len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0], "exceed 256 KiB") {
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
	injections  = "memfit_injections_total"
	outOfBounds = "memfit_injection_errors_total"
)

// TestWhatIsSeenOfReplicasReachesTheNextPod: in every sizing mode.
func TestWhatIsSeenOfReplicasReachesTheNextPod(t *testing.T) {
	h, pod, profile := served(t, "../../internal/inject/testdata/nodejs/node-live-heap-raised.yaml")
	writer, ok := h.Reader.(client.Client)
	if !ok {
		t.Fatal("the fake takes no updates")
	}
	updated := func(obj client.Object) {
		t.Helper()
		if err := writer.Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		if err := h.Resolver.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var recs v1alpha1.MemoryRecommendationList
	if err := writer.List(t.Context(), &recs); err != nil || len(recs.Items) != 1 {
		t.Fatalf("%d recommendations: %v", len(recs.Items), err)
	}
	rec := &recs.Items[0]
	patched := func() string {
		got := asked(t, h, reviewOf(pod))
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

// TestDryRunsAreNotCounted: only pods that are created are.
func TestDryRunsAreNotCounted(t *testing.T) {
	h, pod, _ := served(t, "../../internal/inject/testdata/nodejs/node-512.yaml")
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
	file := "../../internal/inject/testdata/nodejs/node-envfrom-known-keys.yaml"
	h, pod, _ := served(t, file)
	none := asked(t, h, reviewOf(pod))
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app-env"},
		Data:       map[string]string{"PORT": "", "MALLOC_ARENA_MAX": ""},
	}
	reader := fake.NewClientBuilder().WithObjects(settings).Build()
	h.ConfigMaps = reader
	known := asked(t, h, reviewOf(pod))
	if err := reader.Delete(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	gone := asked(t, h, reviewOf(pod))
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

// served is a handler that knows the profile and the recommendation of a golden pair, the pair's pod as JSON, and the
// profile.
func served(t testing.TB, file string) (*testHandler, []byte, *v1alpha1.MemoryProfile) {
	t.Helper()
	pair, err := goldenpods.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return handlerOf(t, objectsOf(&pair)...), pair.Pod, pair.Profile
}

// objectsOf are what a cache knows of a golden pair.
func objectsOf(p *goldenpods.Pair) (all []client.Object) {
	if p.Profile.Name != "" {
		all = append(all, p.Profile)
	}
	if p.Recommendation != nil {
		all = append(all, p.Recommendation)
	}
	return all
}

// TestARequestThatNoNodeTakesIsNotGiven: the limit is given without it.
func TestARequestThatNoNodeTakesIsNotGiven(t *testing.T) {
	pair, err := goldenpods.Read("../../internal/inject/testdata/size-on-create.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, refused := range []memory.Bytes{0, 300 * memory.MiB} {
		objects := objectsOf(&pair)
		for _, o := range objects {
			if rec, is := o.(*v1alpha1.MemoryRecommendation); is {
				rec.Status.RefusedRequest = format.Exact(refused)
			}
		}
		h := handlerOf(t, objects...)
		h.Constraints = &constraintindex.Index{Reader: fake.NewClientBuilder().Build()}
		patch := string(asked(t, h, reviewOf(pair.Pod)).Patch)
		if !strings.Contains(patch, `resources/limits/memory","value":"512Mi"`) {
			t.Errorf("refused %s: no limit: %s", refused, patch)
		}
		if given := strings.Contains(patch, `resources/requests/memory`); given == (refused > 0) {
			t.Errorf("refused %s: the request is given: %v: %s", refused, given, patch)
		}
	}
}

// TestLimitsFollowLimitRangesAndQuotas: each pod is sized by what they allow when it is created.
func TestLimitsFollowLimitRangesAndQuotas(t *testing.T) {
	h, pod, _ := served(t, "../../internal/inject/testdata/size-on-create.yaml") // 256Mi, and 512Mi recommended
	exist := func(objects ...client.Object) {
		h.Constraints = &constraintindex.Index{Reader: fake.NewClientBuilder().WithObjects(objects...).Build()}
	}
	limit := func(step, want string) {
		t.Helper()
		got := asked(t, h, reviewOf(pod))
		if capped := strings.Contains(
			string(got.Patch), `"path":"/spec/containers/0/resources/limits/memory","value":"`+want+`"`,
		); capped == (want == "") {
			t.Errorf("%s: want a limit of %q: %s", step, want, got.Patch)
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
	exist()
	limit("unbounded", "512Mi")
	exist(ranges("400Mi"))
	limit("under a LimitRange", "400Mi")
	exist(ranges("300Mi"))
	limit("a tighter one", "300Mi")
	exist(quota("1Gi"))
	limit("none, and a quota with room", "512Mi")
	exist(quota("1536Mi"))
	limit("with just enough", "512Mi")
	exist(quota("1600Mi"))
	limit("with too little", "")
	exist(quota("512Mi"))
	limit("with room again", "512Mi")
	exist(quota("1600Mi", corev1.ResourceQuotaScopeTerminating))
	limit("one that is for other pods", "512Mi")
}

// reviewOf is a request about raw as the API server writes it.
func reviewOf(raw []byte) []byte {
	return fmt.Appendf(
		nil,
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","namespace":"shop","operation":"CREATE","object":%s,"oldObject":null,"dryRun":false}}`,
		raw,
	)
}
