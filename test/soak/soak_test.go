// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

const (
	// goImage is an image of the lab that the nodes have, so that pods start without pulls.
	goImage = "memfit.test/goprobe:dev"
	// cgroup2Label and cgroup2Value select the lab's node with cgroup v2.
	cgroup2Label, cgroup2Value = "memfit.dev/lab-node", "cgroup2"
	every                      = 15 * time.Second
	perWorkload                = 5
	progressEvery              = 5 * time.Minute
	// grownMiB is the growth per hour that fails the test if the lower end of the interval exceeds it.
	grownMiB = 2.0
)

// kind is a kind of workload. It needs its program's memory plus about 6 MiB for Go.
type kind struct {
	name           string
	args           []string
	limit, request memory.Bytes
	runtime        v1alpha1.RuntimeType
	// share is the number of workloads of this kind among twenty.
	share int
}

// kinds are all kinds. The first one is never killed, so that memfit has little to write.
var kinds = []kind{
	{"steady", []string{"-hold", "15Mi"}, 64 * memory.MiB, 48 * memory.MiB, v1alpha1.RuntimeNative, 7},
	{
		"burst", []string{"-hold", "8Mi", "-burst", "30Mi"}, 36 * memory.MiB, 20 * memory.MiB, v1alpha1.RuntimeNative, 5,
	},
	{"leak", []string{"-hold", "4Mi", "-leak", "160Ki"}, 48 * memory.MiB, 24 * memory.MiB, v1alpha1.RuntimeNative, 4},
	{"churn", []string{"-hold", "10Mi", "-churn", "4Mi"}, 32 * memory.MiB, 24 * memory.MiB, v1alpha1.RuntimeGo, 4},
}

// half is one of two equal populations: memfit only observes the second.
type half struct {
	namespace string
	mode      v1alpha1.SizingMode
	tuning    v1alpha1.TuningMode
}

var halves = []half{
	{"soak-with", v1alpha1.SizingInPlaceOrEvict, v1alpha1.TuningInject},
	{"soak-without", v1alpha1.SizingRecommend, v1alpha1.TuningDisabled},
}

// run is a running soak.
type run struct {
	client    client.Client
	clientset kubernetes.Interface
	lister    corelisters.PodLister
	began     time.Time

	mu sync.Mutex
	// workload maps pod UIDs to "namespace/deployment"; kills are the kernel's, by workload.
	workload map[types.UID]string
	kills    map[string]int64
	unknown  map[types.UID]int64
	missed   bool // the kernel's log was overwritten before it was read
	// unnamed counts kills on this machine whose process the kernel's log does not name ([KilledLine]).
	unnamed int64

	// rss are the series of memfit's own processes, by pod and container, in MiB.
	rss map[string][]Point
	// sums over samples, by namespace
	sums map[string]*sum
	// recordWrites are writes of MemoryCheckpoints and MemoryRecommendations by workload, in the second half of the run.
	recordWrites map[string]int
	// changes are memfit's own records of its changes, by workload.
	changes   map[string][]v1alpha1.ChangeRecord
	rolledOut map[string]bool
	rollouts  int
}

type sum struct {
	samples                 int
	requested, limits, used float64
	notReady                float64 // pod-minutes
	// kernel and memfit are the kills that the kernel logged and memfit counted; stalls are memfit's.
	kernel, memfit, stalls int64
}

// TestSoak runs for SOAK, 60m by default, with SOAK_PODS pods, 200 by default.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(setting("SOAK", "60m"))
	if err != nil {
		t.Fatal(err)
	}
	var pods int
	if _, err := fmt.Sscan(setting("SOAK_PODS", "200"), &pods); err != nil {
		t.Fatal(err)
	}
	r := connect(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r.followHost(ctx, t)
	r.followPods(ctx, t)
	nodes := r.nodes(t)
	count := r.populate(t, pods/len(halves)/perWorkload, slices.Contains(nodes, cgroup2Value))
	r.awaitRunning(t, count*perWorkload*len(halves))
	before := r.writes(t)
	r.began = time.Now()
	rolled, printed := 0, 0
	var late time.Time // start of counting writes of records
	for time.Since(r.began) < length {
		time.Sleep(every)
		r.sample(t)
		if late.IsZero() && time.Since(r.began) > length/2 {
			late = time.Now()
			r.followRecords(ctx, t)
		}
		if due := int(time.Since(r.began) / progressEvery); due > printed {
			printed = due
			r.progress(length)
		}
		if due := int(time.Since(r.began) / max(length/12, 5*time.Minute)); due > rolled {
			rolled = due
			r.rollOut(t, rolled)
		}
	}
	after := r.writes(t)
	hours := time.Since(r.began).Hours()
	settled := time.Since(late).Hours()
	r.mu.Lock()
	recordWrites := maps.Clone(r.recordWrites)
	r.mu.Unlock()
	r.count(t)
	r.report(t, count*len(halves), hours, before, after)
	r.steady(t, recordWrites, late, settled)
}

func setting(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

func connect(t *testing.T) *run {
	t.Helper()
	config, err := ctrl.GetConfig()
	if err != nil {
		t.Fatalf("no cluster: run make soak, or set KUBECONFIG to a lab with memfit and its agent: %v", err)
	}
	config.QPS, config.Burst = 100, 200
	if err := v1alpha1.AddToScheme(clientgoscheme.Scheme); err != nil {
		t.Fatal(err)
	}
	r := &run{
		workload: map[types.UID]string{}, kills: map[string]int64{}, unknown: map[types.UID]int64{},
		rss: map[string][]Point{}, sums: map[string]*sum{}, recordWrites: map[string]int{}, rolledOut: map[string]bool{},
		changes: map[string][]v1alpha1.ChangeRecord{},
	}
	if r.client, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		t.Fatal(err)
	}
	if r.clientset, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return r
}

// nodes returns the values of the lab's label, by node.
func (r *run) nodes(t *testing.T) []string {
	t.Helper()
	var nodes corev1.NodeList
	if err := r.client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	var values []string
	for i := range nodes.Items {
		values = append(values, nodes.Items[i].Labels[cgroup2Label])
	}
	return values
}

// populate creates both halves, and returns the number of workloads in each. With second, a fifth runs on the node with
// cgroup v2.
func (r *run) populate(t *testing.T, each int, second bool) (count int) {
	t.Helper()
	for _, h := range halves {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}
		r.create(t, ns)
		t.Cleanup(func() {
			_ = r.client.Delete(context.Background(), ns, client.PropagationPolicy(metav1.DeletePropagationBackground))
		})
		r.sums[h.namespace] = &sum{}
		for _, runtime := range []v1alpha1.RuntimeType{v1alpha1.RuntimeNative, v1alpha1.RuntimeGo} {
			p := &v1alpha1.MemoryProfile{
				ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: strings.ToLower(string(runtime))},
			}
			p.Spec.Runtime.Type, p.Spec.Sizing.Mode, p.Spec.Tuning.Mode = runtime, h.mode, h.tuning
			p.Spec.Sizing.Limit = &v1alpha1.Bounds{Max: v1alpha1.NewMemoryQuantity((256 * memory.MiB).Quantity())}
			r.create(t, p)
		}
	}
	time.Sleep(3 * time.Second) // until the webhook knows the profiles
	for i := range each {
		k := kindOf(i)
		for _, h := range halves {
			d := k.deployment(h.namespace, i, second && i%5 == 0)
			r.create(t, d)
		}
		count++
		time.Sleep(2 * time.Second) // ten pods at a time: on two cores two hundred would start no faster
	}
	return count
}

// kindOf returns the kind of workload number i. Seven and twenty have no common divisor, so that even a few workloads
// are a mix.
func kindOf(i int) *kind {
	at, k := i*7%20, 0
	for ; at >= kinds[k].share; k++ {
		at -= kinds[k].share
	}
	return &kinds[k]
}

func (k *kind) deployment(namespace string, number int, second bool) *appsv1.Deployment {
	name := fmt.Sprintf("%s-%d", k.name, number)
	app := map[string]string{"app": name}
	args := k.args
	if k.name == "burst" { // with different periods, because the kernel logs at most ten kills in 5 s
		args = append(slices.Clip(args), "-burst-every", (2*time.Minute + time.Duration(number)*7*time.Second).String())
	}
	amount := func(b memory.Bytes) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(b), resource.BinarySI)}
	}
	requests := amount(k.request)
	requests[corev1.ResourceCPU] = resource.MustParse("1m")
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Annotations: map[string]string{v1alpha1.ProfileAnnotation: strings.ToLower(string(k.runtime))},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(perWorkload)), Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(2)), AutomountServiceAccountToken: new(false),
					Containers: []corev1.Container{{
						Name: "app", Image: goImage, ImagePullPolicy: corev1.PullNever, Args: args,
						Resources: corev1.ResourceRequirements{Limits: amount(k.limit), Requests: requests},
					}},
				},
			},
		},
	}
	if second {
		d.Spec.Template.Spec.NodeSelector = map[string]string{cgroup2Label: cgroup2Value}
		d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: cgroup2Label, Operator: corev1.TolerationOpExists}}
	}
	return d
}

func (r *run) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := r.client.Create(t.Context(), o); err != nil {
		t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

// awaitRunning waits until all pods run at the same time, although some are already being killed.
func (r *run) awaitRunning(t *testing.T, want int) {
	t.Helper()
	most := 0
	for deadline := time.Now().Add(15 * time.Minute); time.Now().Before(deadline); time.Sleep(3 * time.Second) {
		running := 0
		for _, p := range r.pods() {
			if p.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running >= want {
			t.Logf("%d pods run", running)
			return
		}
		most = max(most, running)
	}
	t.Fatalf("at most %d of %d pods ran within 15 minutes", most, want)
}

// followPods records the workload of each pod, also for kills of deleted pods, and caches the pods.
func (r *run) followPods(ctx context.Context, t *testing.T) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(r.clientset, 0)
	informer := factory.Core().V1().Pods().Informer()
	record := func(obj any) {
		p, ok := obj.(*corev1.Pod)
		if !ok || !slices.ContainsFunc(halves, func(h half) bool { return h.namespace == p.Namespace }) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		w := p.Namespace + "/" + p.Labels["app"]
		r.workload[p.UID] = w
		r.kills[w] += r.unknown[p.UID]
		delete(r.unknown, p.UID)
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: record}); err != nil {
		t.Fatal(err)
	}
	r.lister = factory.Core().V1().Pods().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
}

// followRecords counts the updates of each workload's records.
func (r *run) followRecords(ctx context.Context, t *testing.T) {
	t.Helper()
	config, err := ctrl.GetConfig()
	if err != nil {
		t.Fatal(err)
	}
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(api, 0)
	for _, resource := range []string{"memorycheckpoints", "memoryrecommendations"} {
		informer := factory.ForResource(v1alpha1.GroupVersion.WithResource(resource)).Informer()
		count := func(before, after any) {
			old, isOld := before.(client.Object)
			o, is := after.(client.Object)
			if !is || !isOld || old.GetResourceVersion() == o.GetResourceVersion() {
				return
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.recordWrites[o.GetNamespace()+"/"+strings.TrimPrefix(o.GetName(), "deployment-")]++
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: count}); err != nil {
			t.Fatal(err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
}

// pods returns the pods of both halves, except failed and succeeded ones.
func (r *run) pods() []*corev1.Pod {
	var all []*corev1.Pod
	for _, h := range halves {
		pods, _ := r.lister.Pods(h.namespace).List(labels.Everything()) // a cache returns no error
		all = append(all, pods...)
	}
	return slices.DeleteFunc(all, func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	})
}

// killed counts a kill of the kernel's log.
func (r *run) killed(k Kill) {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := types.UID(k.Pod)
	if w, known := r.workload[uid]; known {
		r.kills[w]++
	} else {
		r.unknown[uid]++ // a pod that is not in the cache yet, or of another namespace
	}
}

// followHost reads the kernel's log of this machine, on which the lab's first node runs.
func (r *run) followHost(ctx context.Context, t *testing.T) {
	t.Helper()
	f, err := os.Open("/dev/kmsg")
	if err != nil {
		t.Fatalf("reading the kernel's log for its OOM kills: %v", err)
	}
	_, err = f.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer f.Close()
		line := make([]byte, 8<<10)
		for ctx.Err() == nil {
			n, err := f.Read(line)
			if err != nil && !errors.Is(err, syscall.EPIPE) {
				return
			}
			r.hostLine(string(line[:max(n, 0)]), err != nil)
		}
	}()
}

// hostLine processes a line of this machine's kernel log. overwritten: lines were overwritten before they were read.
func (r *run) hostLine(line string, overwritten bool) {
	k, named := ReadKill(line)
	if named {
		r.killed(k)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missed = r.missed || overwritten
	switch {
	case KilledLine(line):
		r.unnamed++
	case strings.Contains(line, "oom-kill:constraint=CONSTRAINT_MEMCG"): // logged before the line of KilledLine
		r.unnamed--
	}
}

// readGuest returns the kills in the kernel's log of the node with cgroup v2, since its boot.
func (r *run) readGuest(t *testing.T) (kills map[string]int64) {
	t.Helper()
	kills = map[string]int64{}
	command := os.Getenv("SOAK_GUEST_LOG")
	if command == "" {
		return kills
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", command).Output()
	if err != nil {
		t.Fatalf("reading the log of the node with cgroup v2: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if k, ok := ReadKill(lines.Text()); ok {
			if w, known := r.workload[types.UID(k.Pod)]; known {
				kills[w]++
			}
		}
	}
	return kills
}

// sample adds the current use, limits, requests and readiness of all pods.
func (r *run) sample(t *testing.T) {
	at := time.Since(r.began)
	used := map[string]float64{}
	var nodes corev1.NodeList
	if err := r.client.List(t.Context(), &nodes); err != nil {
		t.Logf("listing nodes: %v", err)
		return
	}
	for i := range nodes.Items {
		if err := r.summary(t.Context(), nodes.Items[i].Name, at, used); err != nil {
			t.Logf("reading the stats of node %s: %v", nodes.Items[i].Name, err)
			return // a sample needs all nodes
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range halves {
		s := r.sums[h.namespace]
		s.samples++
		s.used += used[h.namespace]
	}
	for _, p := range r.pods() {
		s := r.sums[p.Namespace]
		for _, c := range p.Spec.Containers {
			s.requested += float64(c.Resources.Requests.Memory().Value())
			s.limits += float64(c.Resources.Limits.Memory().Value())
		}
		if len(p.Status.ContainerStatuses) == 0 || !p.Status.ContainerStatuses[0].Ready {
			s.notReady += every.Minutes()
		}
	}
}

// progress prints the progress of the run.
func (r *run) progress(length time.Duration) {
	pods := len(r.pods())
	r.mu.Lock()
	defer r.mu.Unlock()
	var kernel int64
	for _, n := range r.kills {
		kernel += n
	}
	fmt.Printf("soak %s of %s: %d pods, %d OOM kills in the kernel's log; RSS:", time.Since(r.began).Round(time.Second),
		length, pods, kernel)
	for _, name := range slices.Sorted(maps.Keys(r.rss)) {
		series := r.rss[name]
		fmt.Printf(" %s %.1f MiB", name, series[len(series)-1].Value)
	}
	fmt.Println()
}

// summary reads the use of one node's pods from its kubelet.
func (r *run) summary(ctx context.Context, node string, at time.Duration, used map[string]float64) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	data, err := r.clientset.CoreV1().RESTClient().Get().
		AbsPath("/api/v1/nodes/"+node+"/proxy/stats/summary").Param("only_cpu_and_memory", "true").DoRaw(ctx)
	var s stats.Summary
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range s.Pods {
		for _, c := range p.Containers {
			if c.Memory == nil || c.Memory.RSSBytes == nil || c.Memory.WorkingSetBytes == nil {
				continue
			}
			switch p.PodRef.Namespace {
			case halves[0].namespace, halves[1].namespace:
				used[p.PodRef.Namespace] += float64(*c.Memory.WorkingSetBytes)
			case "memfit-system", "memfit-agent":
				name := p.PodRef.Name + "/" + c.Name
				r.rss[name] = append(r.rss[name], Point{at, float64(*c.Memory.RSSBytes) / float64(memory.MiB)})
			}
		}
	}
	return nil
}

// rollOut restarts one workload of each half with a rollout.
func (r *run) rollOut(t *testing.T, n int) {
	for _, h := range halves {
		var all appsv1.DeploymentList
		if err := r.client.List(t.Context(), &all, client.InNamespace(h.namespace)); err != nil || len(all.Items) == 0 {
			t.Logf("listing Deployments: %v", err)
			continue
		}
		d := &all.Items[n*7%len(all.Items)]
		patch := fmt.Sprintf(
			`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`,
			time.Now().Format(time.RFC3339))
		if err := r.client.Patch(t.Context(), d, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
			t.Logf("rolling out %s: %v", d.Name, err)
		}
		r.mu.Lock()
		r.rolledOut[h.namespace+"/"+d.Name] = true
		r.rollouts++
		r.mu.Unlock()
	}
}

// writes returns the API server's counts of memfit's write requests, by resource. The scheduler also writes events of
// the group events.k8s.io, one for each pod that it binds, which are subtracted.
func (r *run) writes(t *testing.T) map[string]float64 {
	t.Helper()
	data, err := r.clientset.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		label := func(name string) string {
			_, after, _ := strings.Cut(line, name+`="`)
			value, _, _ := strings.Cut(after, `"`)
			return value
		}
		verb, what := label("verb"), label("resource")
		if sub := label("subresource"); sub != "" && sub != "status" {
			what += "/" + sub
		}
		isMemfit := label("group") == "memfit.dev" || what == "pods/resize" || what == "pods/eviction" ||
			what == "pods/binding" || label("group") == "events.k8s.io"
		if !isMemfit || !slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, verb) {
			continue
		}
		var n float64
		if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n); err == nil {
			counts[what] += n
		}
	}
	counts["events"] -= counts["pods/binding"]
	delete(counts, "pods/binding")
	return counts
}

// kills are the counts of one workload.
type kills struct{ kernel, memfit int64 }

// count compares memfit's counts with the kernel's for each workload. Because reports are late and kills continue, it
// waits up to three minutes until the counts of each workload have been equal once.
func (r *run) count(t *testing.T) {
	compared := map[string]kills{}
	differs := func(k kills) bool { return k.kernel != k.memfit }
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(2 * time.Second) {
		r.compare(t, compared)
		if !slices.ContainsFunc(slices.Collect(maps.Values(compared)), differs) || time.Now().After(end) {
			break
		}
	}
	var more int64
	for _, w := range slices.Sorted(maps.Keys(compared)) {
		k := compared[w]
		ns, _, _ := strings.Cut(w, "/")
		r.sums[ns].kernel += k.kernel
		r.sums[ns].memfit += k.memfit
		if differs(k) {
			fmt.Printf("kills workload=%s kernel=%d memfit=%d\n", w, k.kernel, k.memfit)
		}
		if k.memfit < k.kernel {
			t.Errorf("%s: memfit counts %d kills, the kernel logged %d", w, k.memfit, k.kernel)
		}
		more += max(0, k.memfit-k.kernel)
	}
	if more > r.unnamed {
		t.Errorf("memfit counts %d kills more than the kernel's log names; at most %d are unnamed", more, r.unnamed)
	}
	if r.missed {
		t.Error("the kernel's log was overwritten before it was read: its count is too low")
	}
}

// compare updates the counts of the workloads that were not equal yet.
func (r *run) compare(t *testing.T, compared map[string]kills) {
	t.Helper()
	memfit := map[string]int64{}
	for _, h := range halves {
		var recs v1alpha1.MemoryRecommendationList
		if err := r.client.List(t.Context(), &recs, client.InNamespace(h.namespace)); err != nil {
			t.Logf("listing recommendations: %v", err)
			return
		}
		r.sums[h.namespace].stalls = 0
		for i := range recs.Items {
			rec := &recs.Items[i]
			workload := h.namespace + "/" + strings.TrimPrefix(rec.Name, "deployment-")
			memfit[workload], r.changes[workload] = rec.Status.OOMKills, rec.Status.RecentChanges
			r.sums[h.namespace].stalls += rec.Status.Stalls
		}
	}
	guest := r.readGuest(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.workload {
		if k, found := compared[w]; !found || k.kernel != k.memfit {
			compared[w] = kills{r.kills[w] + guest[w], memfit[w]}
		}
	}
}

// report prints the results and checks growth and writes.
func (r *run) report(t *testing.T, workloads int, hours float64, before, after map[string]float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Printf("\nsoak minutes=%.0f workloads=%d samples=%d kills_unnamed=%d\n", hours*60, workloads,
		r.sums[halves[0].namespace].samples, r.unnamed)
	fmt.Println("| half | sizing.mode | tuning.mode | kills (kernel) | kills (memfit) | stalls (memfit) | GiB requested " +
		"| GiB of limits | GiB used | pod-minutes not ready |\n|---|---|---|---|---|---|---|---|---|---|")
	for _, h := range halves {
		s := r.sums[h.namespace]
		gib := func(sum float64) float64 { return sum / float64(max(s.samples, 1)) / float64(memory.GiB) }
		fmt.Printf("| %s | %s | %s | %d | %d | %d | %.2f | %.2f | %.2f | %.0f |\n", h.namespace, h.mode, h.tuning, s.kernel,
			s.memfit, s.stalls, gib(s.requested), gib(s.limits), gib(s.used), s.notReady)
	}
	r.growth(t)
	r.budget(t, hours, before, after)
}

// growth prints the slope of the RSS of each of memfit's processes, and checks it.
func (r *run) growth(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(r.rss)) {
		series := r.rss[name]
		last := series[len(series)-1]
		warm := slices.DeleteFunc(slices.Clone(series), func(p Point) bool { return p.At < last.At/4 })
		trend, ok := Slope(warm)
		if !ok {
			t.Errorf("%s: too few samples (%d) for a slope: the process was restarted, or SOAK is too short", name, len(series))
			continue
		}
		fmt.Printf("rss process=%s samples=%d first_mib=%.1f last_mib=%.1f slope_mib_per_hour=%.2f low=%.2f high=%.2f "+
			"mib_every_2m=%.1f\n", name, len(series), series[0].Value, last.Value, trend.PerHour, trend.Low, trend.High,
			values(means(series)))
		if trend.Low > grownMiB {
			t.Errorf("%s grows by %.2f MiB an hour, at least %.2f", name, trend.PerHour, trend.Low)
		}
	}
}

// Numbers of writes that memfit needs.
const (
	// writesOfKill: a checkpoint for the kill, one for the agent's report and one for the limit after the restart; a
	// recommendation for each of the first two; the profile's status; an Event on the pod and one on the workload.
	writesOfKill = 3 + 2 + 1 + 2
	// writesOfChange: the request itself; a checkpoint and a recommendation before and after it; the Events Resizing and
	// Resized on the pod and one Event on the workload.
	writesOfChange  = 1 + recordsOfChange + 3
	recordsOfChange = 2 + 2
	// recordsOfFirstSize: after an hour, recommendation and checkpoint get the workload's first size.
	recordsOfFirstSize = 2
	// writesOfRollout, per pod: recommendation and profile, for the deleted and for the new pod.
	writesOfRollout = 2 * 2
	// writesOfBeginning: recommendation and profile are written for their creation and their pods, and three times for
	// each tenfold number of samples; a workload has fewer than two thousand in an hour.
	writesOfBeginning = 2*10 + 6
	// writesAnHour of a workload in steady operation (docs/evidence/scale.md).
	writesAnHour = 8
	// restlessWrites an hour: for a workload that leaks or bursts, recommendation and checkpoint are written every ten
	// minutes.
	restlessWrites = 2 * 6
)

func values(points []Point) []float64 {
	v := make([]float64, len(points))
	for i, p := range points {
		v[i] = p.Value
	}
	return v
}

// budget prints memfit's writes and checks their sum.
func (r *run) budget(t *testing.T, hours float64, before, after map[string]float64) {
	var changes, kills, all float64
	workloads := float64(len(r.kills))
	for _, what := range slices.Sorted(maps.Keys(after)) {
		n := after[what] - before[what]
		fmt.Printf("writes resource=%s count=%.0f per_workload_and_hour=%.1f\n", what, n, n/workloads/hours)
		if strings.HasPrefix(what, "pods/") {
			changes += n
		}
		if what != "memorysnapshots" { // the agent's, with their own budget
			all += n
		}
	}
	for _, s := range r.sums {
		kills += float64(s.kernel)
	}
	allowed := writesOfBeginning*workloads + writesOfKill*kills + writesOfChange*changes +
		writesOfRollout*perWorkload*float64(r.rollouts)
	for w := range r.kills {
		if kindIn(w) == kinds[0].name {
			allowed += writesAnHour * hours
		} else {
			allowed += restlessWrites * hours
		}
	}
	fmt.Printf("writes all=%.0f allowed=%.0f kills=%.0f changes=%.0f rollouts=%d\n",
		all, allowed, kills, changes, r.rollouts)
	if all > allowed {
		t.Errorf("%.0f writes, %.0f are allowed", all, allowed)
	}
}

// kindIn returns the kind of the workload "namespace/kind-number".
func kindIn(workload string) string {
	_, name, _ := strings.Cut(workload, "/")
	kind, _, _ := strings.Cut(name, "-")
	return kind
}

// steady checks the record writes of steady workloads in the second half of the run: the rate of docs/evidence/scale.md
// plus the writes of memfit's changes, which it makes after an hour of history. It prints the writes of all workloads.
func (r *run) steady(t *testing.T, writes map[string]int, since time.Time, hours float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]int{}
	for w := range r.kills {
		kind := kindIn(w)
		if r.rolledOut[w] {
			continue
		}
		all[kind] = append(all[kind], writes[w])
		// plus one write of each record, which may fall into any window
		allowed := writesAnHour*hours + 2 + recordsOfFirstSize + recordsOfChange*r.changed(w, since)
		if kind == kinds[0].name && float64(writes[w]) > allowed {
			t.Errorf("%s: %d writes of its records in %.0f minutes, %.1f are allowed", w, writes[w], hours*60, allowed)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		slices.Sort(all[kind])
		fmt.Printf("writes of=records kind=%s minutes=%.0f by_workload=%v\n", kind, hours*60, all[kind])
	}
}

// changed returns how many of the workload's pods memfit has changed since then.
func (r *run) changed(workload string, since time.Time) (pods float64) {
	for _, c := range r.changes[workload] {
		if c.Time.After(since) {
			pods += float64(c.Pods)
		}
	}
	return pods
}
