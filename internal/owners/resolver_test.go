// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/memory"
)

// cluster is a client.Reader over a map, which also remembers what it was asked for. Keys are "Kind/name"; everything
// is in namespace shop.
type cluster struct {
	client.Reader // any other method panics
	objects       map[string]*metav1.PartialObjectMetadata
	fail          error
	asked         []string
}

func (c *cluster) Get(ctx context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	into := out.(*metav1.PartialObjectMetadata)
	id := into.Kind + "/" + key.Name
	c.asked = append(c.asked, id)
	if c.fail != nil {
		return c.fail
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m, ok := c.objects[id]
	if !ok || key.Namespace != "shop" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: into.Kind}, key.Name)
	}
	*into = *m
	return nil
}

// holding builds a cluster from "Kind/name" or "Kind/name < APIVersion Kind/name" (its controller). UIDs are
// "uid-Kind/name"; every object carries the annotation on=Kind/name.
func holding(lines ...string) *cluster {
	c := &cluster{objects: map[string]*metav1.PartialObjectMetadata{}}
	for _, line := range lines {
		id, above, owned := strings.Cut(line, " < ")
		m := &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID("uid-" + id), Annotations: map[string]string{"on": id}},
		}
		if owned {
			m.OwnerReferences = ownedBy(above)
		}
		c.objects[id] = m
	}
	return c
}

func ownedBy(above string) []metav1.OwnerReference {
	apiVersion, id, _ := strings.Cut(above, " ")
	kind, name, _ := strings.Cut(id, "/")
	return []metav1.OwnerReference{
		{APIVersion: "example.com/v1", Kind: "Bystander", Name: "not-the-controller"},
		{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + id), Controller: new(true)},
	}
}

func podOf(above string, labels ...string) *metav1.ObjectMeta {
	pod := &metav1.ObjectMeta{Namespace: "shop", GenerateName: "web-", Labels: map[string]string{}}
	if above != "" {
		pod.OwnerReferences = ownedBy(above)
	}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		pod.Labels[key] = value
	}
	return pod
}

func TestOwner(t *testing.T) {
	deployment := func(name string) Owner { return read("apps/v1", "Deployment", name) }
	for name, test := range map[string]struct {
		pod       *metav1.ObjectMeta
		cache     *cluster
		live      *cluster
		want      Owner
		wantErr   error
		wantAsked []string // of the cache; nil: not checked
		wantLive  []string
	}{
		"a Deployment, through its ReplicaSet": {
			pod:       podOf("apps/v1 ReplicaSet/web-6d4c", "pod-template-hash=6d4c"),
			cache:     holding("ReplicaSet/web-6d4c < apps/v1 Deployment/web", "Deployment/web"),
			want:      deployment("web"),
			wantAsked: []string{"ReplicaSet/web-6d4c", "Deployment/web"},
		},
		"a Deployment that an operator made: people read and size the Deployment": {
			pod:   podOf("apps/v1 ReplicaSet/web-6d4c"),
			cache: holding("ReplicaSet/web-6d4c < apps/v1 Deployment/web", "Deployment/web < example.com/v1 Web/web"),
			want:  deployment("web"),
		},
		"a StatefulSet of an operator with several of them": {
			pod:   podOf("apps/v1 StatefulSet/kafka-broker"),
			cache: holding("StatefulSet/kafka-broker < kafka.example/v1 Kafka/kafka"),
			want:  read("apps/v1", "StatefulSet", "kafka-broker"),
		},
		"a DaemonSet": {
			pod: podOf("apps/v1 DaemonSet/log"), cache: holding("DaemonSet/log"), want: read("apps/v1", "DaemonSet", "log"),
		},
		"a ReplicationController": {
			pod: podOf("v1 ReplicationController/old"), cache: holding("ReplicationController/old"),
			want: read("v1", "ReplicationController", "old"),
		},
		"a Job by hand": {
			pod: podOf("batch/v1 Job/once"), cache: holding("Job/once"), want: read("batch/v1", "Job", "once"),
		},
		"a ReplicaSet by hand": {
			pod: podOf("apps/v1 ReplicaSet/rs"), cache: holding("ReplicaSet/rs"), want: read("apps/v1", "ReplicaSet", "rs"),
		},
		"a CronJob, through its Job": {
			pod:   podOf("batch/v1 Job/nightly-29384756"),
			cache: holding("Job/nightly-29384756 < batch/v1 CronJob/nightly", "CronJob/nightly"),
			want:  read("batch/v1", "CronJob", "nightly"),
		},
		"a reference in an older API version names the same workload": {
			pod:   podOf("batch/v1 Job/nightly-29384756"),
			cache: holding("Job/nightly-29384756 < batch/v1beta1 CronJob/nightly", "CronJob/nightly"),
			want:  read("batch/v1", "CronJob", "nightly"),
		},
		"an Argo Rollout, for which there is no cache": {
			pod:       podOf("apps/v1 ReplicaSet/web-6d4c", "rollouts-pod-template-hash=6d4c"),
			cache:     holding("ReplicaSet/web-6d4c < argoproj.io/v1alpha1 Rollout/web"),
			want:      referenced("argoproj.io/v1alpha1", "Rollout", "web"),
			wantAsked: []string{"ReplicaSet/web-6d4c"},
		},
		"a kind nobody heard of is never asked for": {
			pod:       podOf("apps.kruise.io/v1alpha1 CloneSet/web"),
			cache:     holding("CloneSet/web"),
			want:      referenced("apps.kruise.io/v1alpha1", "CloneSet", "web"),
			wantAsked: []string{},
		},
		"somebody else's kind of the same name is not ours": {
			pod:       podOf("batch.volcano.sh/v1alpha1 Job/train"),
			cache:     holding("Job/train"),
			want:      referenced("batch.volcano.sh/v1alpha1", "Job", "train"),
			wantAsked: []string{},
		},
		"a bare pod without a name yet": {
			pod:   &metav1.ObjectMeta{Namespace: "shop", GenerateName: "debug-", Annotations: map[string]string{"on": "pod"}},
			cache: holding(),
			want: Owner{
				Ref:         memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "debug-"},
				Annotations: map[string]string{"on": "pod"},
			},
		},
		"a static pod belongs to itself, not to its Node": {
			pod: &metav1.ObjectMeta{
				Namespace: "shop", Name: "etcd-node1", UID: "u", OwnerReferences: ownedBy("v1 Node/node1"),
			},
			cache: holding(),
			want: Owner{
				Ref: memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "etcd-node1"}, UID: "u",
			},
		},

		"new rollout: the ReplicaSet is not in the cache, its name says whose it is": {
			pod:       podOf("apps/v1 ReplicaSet/web-6d4c", "pod-template-hash=6d4c"),
			cache:     holding("Deployment/web"),
			live:      holding(),
			want:      deployment("web"),
			wantAsked: []string{"ReplicaSet/web-6d4c", "Deployment/web"},
			wantLive:  []string{},
		},
		"new rollout of an Argo Rollout, nothing to confirm it with": {
			pod:   podOf("apps/v1 ReplicaSet/web-6d4c", "rollouts-pod-template-hash=6d4c"),
			cache: holding(),
			want:  unverified("argoproj.io/v1alpha1", "Rollout", "web"),
		},
		"new Deployment: neither is in the cache, the API server has both": {
			pod:      podOf("apps/v1 ReplicaSet/web-6d4c", "pod-template-hash=6d4c"),
			cache:    holding(),
			live:     holding("ReplicaSet/web-6d4c < apps/v1 Deployment/web", "Deployment/web"),
			want:     deployment("web"),
			wantLive: []string{"ReplicaSet/web-6d4c", "Deployment/web"},
		},
		"a ReplicaSet whose name only looks like a Deployment's": {
			pod:   podOf("apps/v1 ReplicaSet/web-6d4c", "pod-template-hash=6d4c"),
			cache: holding(),
			live:  holding("ReplicaSet/web-6d4c"),
			want:  read("apps/v1", "ReplicaSet", "web-6d4c"),
		},
		"new Deployment and nobody to ask: the best name, and an error because an annotation may be there": {
			pod:     podOf("apps/v1 ReplicaSet/web-6d4c", "pod-template-hash=6d4c"),
			cache:   holding(),
			want:    unverified("apps/v1", "Deployment", "web"),
			wantErr: ErrNotSeen,
		},
		"new StatefulSet and nobody to ask": {
			pod:     podOf("apps/v1 StatefulSet/db"),
			cache:   holding(),
			want:    referenced("apps/v1", "StatefulSet", "db"),
			wantErr: ErrNotSeen,
		},
		"the API server does not answer in time": {
			pod:     podOf("apps/v1 StatefulSet/db"),
			cache:   holding(),
			live:    &cluster{fail: context.DeadlineExceeded},
			want:    referenced("apps/v1", "StatefulSet", "db"),
			wantErr: context.DeadlineExceeded,
		},
		"the ReplicaSet is gone, its pod still ends: it counts for the Deployment": {
			pod:   podOf("apps/v1 ReplicaSet/web-6d4c", "pod-template-hash=6d4c"),
			cache: holding(),
			live:  holding(),
			want:  gone(unverified("apps/v1", "Deployment", "web")),
		},
		"a Deployment deleted and made again: a pod from before, whose ReplicaSet is gone, is not the new one's": {
			pod:   since(podOf("apps/v1 ReplicaSet/web-6d4c", "pod-template-hash=6d4c"), 1),
			cache: madeAt(holding("Deployment/web"), "Deployment/web", 2),
			live:  holding(),
			want:  gone(unverified("apps/v1", "Deployment", "web")),
		},
		"a new rollout of an old Deployment: the pod is younger": {
			pod:   since(podOf("apps/v1 ReplicaSet/web-6d4c", "pod-template-hash=6d4c"), 2),
			cache: madeAt(holding("Deployment/web"), "Deployment/web", 2),
			live:  holding(),
			want:  deployment("web"),
		},
		"a StatefulSet deleted and made again: the old one's pod learns nothing from the new one": {
			pod:   podOf("apps/v1 StatefulSet/db"),
			cache: withUID(holding("StatefulSet/db"), "StatefulSet/db", "another"),
			live:  withUID(holding("StatefulSet/db"), "StatefulSet/db", "another"),
			want:  gone(referenced("apps/v1", "StatefulSet", "db")),
		},
		"a StatefulSet deleted and made again: the cache still has the old one": {
			pod:   podOf("apps/v1 StatefulSet/db"),
			cache: withUID(holding("StatefulSet/db"), "StatefulSet/db", "another"),
			live:  holding("StatefulSet/db"),
			want:  read("apps/v1", "StatefulSet", "db"),
		},
		"the cache is broken and nobody else to ask": {
			pod:     podOf("apps/v1 StatefulSet/db"),
			cache:   &cluster{fail: errBroken},
			want:    referenced("apps/v1", "StatefulSet", "db"),
			wantErr: errBroken,
		},
		"the cache is broken, the API server is not": {
			pod:   podOf("apps/v1 StatefulSet/db"),
			cache: &cluster{fail: errBroken},
			live:  holding("StatefulSet/db"),
			want:  read("apps/v1", "StatefulSet", "db"),
		},
		"owners in a ring": {
			pod:       podOf("apps/v1 ReplicaSet/a"),
			cache:     holding("ReplicaSet/a < batch/v1 Job/b", "Job/b < apps/v1 ReplicaSet/a"),
			want:      read("batch/v1", "Job", "b"),
			wantAsked: []string{"ReplicaSet/a", "Job/b"},
		},
		"owners without end": {
			pod: podOf("batch/v1 Job/1"),
			cache: holding("Job/1 < batch/v1 Job/2", "Job/2 < batch/v1 Job/3", "Job/3 < batch/v1 Job/4",
				"Job/4 < batch/v1 Job/5",
				"Job/5 < batch/v1 Job/6"),
			want:      read("batch/v1", "Job", "4"),
			wantAsked: []string{"Job/1", "Job/2", "Job/3", "Job/4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := Resolver{Reader: test.cache}
			if test.live != nil {
				r.APIReader = test.live
			}
			got, err := r.Owner(t.Context(), test.pod)
			if !errors.Is(err, test.wantErr) {
				t.Fatalf("error = %v, want %v", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("owner (-want +got):\n%s", diff)
			}
			if test.wantAsked != nil && fmt.Sprint(test.cache.asked) != fmt.Sprint(test.wantAsked) {
				t.Errorf("asked the cache for %v, want %v", test.cache.asked, test.wantAsked)
			}
			if test.wantLive != nil && fmt.Sprint(test.live.asked) != fmt.Sprint(test.wantLive) {
				t.Errorf("asked the API server for %v, want %v", test.live.asked, test.wantLive)
			}
		})
	}
}

// TestAnOwnerThatIsGoneIsReadOnce: pods run for minutes after their owner, each with events of its own.
func TestAnOwnerThatIsGoneIsReadOnce(t *testing.T) {
	live := holding()
	r := Resolver{Reader: holding(), APIReader: live, Gone: NewGone()}
	for range 3 {
		if o, err := r.Owner(t.Context(), podOf("apps/v1 StatefulSet/db")); err != nil || !o.Gone {
			t.Fatalf("got %+v, %v, want an owner that is gone", o, err)
		}
	}
	if len(live.asked) != 1 {
		t.Errorf("asked the API server for %v, want once", live.asked)
	}
	next := podOf("apps/v1 StatefulSet/db")
	next.OwnerReferences[1].UID = "another"
	live.objects["StatefulSet/db"] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "another"}}
	if o, err := r.Owner(t.Context(), next); err != nil || o.Gone || o.UID != "another" {
		t.Errorf("got %+v, %v, want the later owner of that name", o, err)
	}
}

// TestGoneIsBounded: the newest deletions are remembered, and a forged reference marks only what it names.
func TestGoneIsBounded(t *testing.T) {
	g := NewGone()
	db := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "db"}
	for i := range 5 * maxGone {
		g.Add(db, types.UID(fmt.Sprint(i)))
	}
	if n := g.owners.Len(); n > maxGone {
		t.Errorf("%d owners are remembered, want at most %d", n, maxGone)
	}
	if !g.Has(db, types.UID(fmt.Sprint(5*maxGone-1))) || !g.Has(db, types.UID(fmt.Sprint(4*maxGone))) {
		t.Error("the newest deletions are forgotten")
	}
	other := db
	other.Namespace = "victim"
	if g.Has(other, types.UID(fmt.Sprint(5*maxGone-1))) || g.Has(db, "") {
		t.Error("a UID of another namespace, or none, is known to be gone")
	}
}

var errBroken = errors.New("broken")

// referenced is the content of a reference; unverified is a guess, so it has no UID; read has been read.
func referenced(apiVersion, kind, name string) Owner {
	o := unverified(apiVersion, kind, name)
	o.UID = types.UID("uid-" + kind + "/" + name)
	return o
}

func unverified(apiVersion, kind, name string) Owner {
	return Owner{Ref: memory.WorkloadRef{APIVersion: apiVersion, Kind: kind, Namespace: "shop", Name: name}}
}

func gone(o Owner) Owner {
	o.Gone = true
	return o
}

func read(apiVersion, kind, name string) Owner {
	o := referenced(apiVersion, kind, name)
	o.Annotations = map[string]string{"on": kind + "/" + name}
	return o
}

func withUID(c *cluster, id string, uid types.UID) *cluster {
	c.objects[id].UID = uid
	return c
}

func madeAt(c *cluster, id string, second int64) *cluster {
	c.objects[id].CreationTimestamp = metav1.Unix(second, 0)
	return c
}

func since(pod *metav1.ObjectMeta, second int64) *metav1.ObjectMeta {
	pod.CreationTimestamp = metav1.Unix(second, 0)
	return pod
}
