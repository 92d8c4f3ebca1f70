// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	vpav1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	vpaclient "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/client/clientset/versioned/typed/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/checkpoint"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/config"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/routines"
	"k8s.io/klog/v2"

	"github.com/memfit/memfit/internal/memory"
)

// autoscaler is VPA's recommender with its own model, estimators, status update and checkpoint writer; only lists and
// watches are not there, because the bench knows what they would say.
type autoscaler struct {
	state       model.ClusterState
	recommender routines.Recommender
	workloads   []*target
	objects     map[string]*vpav1.VerticalPodAutoscaler // by name
	writes      writes
	checkpoints int64 // bytes written
}

// target is a VerticalPodAutoscaler, and the pods of the Deployment it is for.
type target struct {
	object   *vpav1.VerticalPodAutoscaler
	selector labels.Selector
	like     *container
	pods     []model.ContainerID
}

func newAutoscaler(workloads, replicas int) (*autoscaler, error) {
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	defaults := config.DefaultRecommenderConfig()
	state := model.NewClusterState(time.Hour)
	a := &autoscaler{state: state, objects: map[string]*vpav1.VerticalPodAutoscaler{}}
	a.recommender = routines.RecommenderFactory{
		ClusterState: state, CheckpointWriter: checkpoint.NewCheckpointWriter(state, a), VpaClient: a,
		PodResourceRecommender: vpaRecommender(),
		RecommendationFormat: logic.RecommendationFormat{
			RoundCPUMillicores: defaults.RoundCPUMillicores, RoundMemoryBytes: defaults.RoundMemoryBytes,
		},
		RecommendationPostProcessors: []routines.RecommendationPostProcessor{routines.NewCappingRecommendationProcessor(nil)},
		CheckpointsGCInterval:        defaults.CheckpointsGCInterval, UseCheckpoints: true,
		UpdateWorkerCount: 1, // its ten would wait for each other on one core
	}.Make()
	for i := range workloads {
		t := newTarget(i)
		size := model.Resources{model.ResourceMemory: model.ResourceAmount(t.like.limit)}
		for n := range replicas {
			id := model.ContainerID{
				PodID: model.PodID{
					Namespace: t.object.Namespace, PodName: fmt.Sprintf("%s-6d4cf56db6-%05d", t.object.Name, n),
				},
				ContainerName: "app",
			}
			state.AddOrUpdatePod(
				id.PodID, labels.Set{"app": t.object.Name, "pod-template-hash": "6d4cf56db6"}, corev1.PodRunning,
			)
			if err := state.AddOrUpdateContainer(id, size); err != nil {
				return nil, err
			}
			t.pods = append(t.pods, id)
		}
		a.workloads = append(a.workloads, t)
		a.objects[t.object.Name] = t.object
	}
	return a, a.load()
}

func newTarget(i int) *target {
	t := &target{like: newContainer(i), selector: labels.SelectorFromSet(labels.Set{"app": name(i)})}
	t.object = &vpav1.VerticalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", i%100), Name: name(i)},
		Spec: vpav1.VerticalPodAutoscalerSpec{
			TargetRef: &autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name(i)},
		},
	}
	return t
}

// load is the part of VPA's loop that takes over the VerticalPodAutoscalers as its cache has them.
func (a *autoscaler) load() error {
	objects := make([]*vpav1.VerticalPodAutoscaler, len(a.workloads))
	for i, t := range a.workloads {
		if err := a.state.AddOrUpdateVpa(t.object, t.selector); err != nil {
			return err
		}
		objects[i] = t.object
	}
	a.state.SetObservedVPAs(objects)
	return nil
}

// measure delivers one reading of every pod, as the metrics API would, and a kill as VPA's observer would.
func (a *autoscaler) measure(t *target, at time.Time) error {
	rss, killed := t.like.use(at)
	for n, id := range t.pods {
		for _, s := range vpaSamples(t.like, at, rss-rss*memory.Bytes(n%5)/100) {
			if err := a.state.AddSample(&model.ContainerUsageSampleWithKey{ContainerUsageSample: s, Container: id}); err != nil {
				return fmt.Errorf("VPA takes no sample of %s at %s: %w", id.PodName, at, err)
			}
		}
	}
	if killed {
		return a.state.RecordOOM(t.pods[0], at, model.ResourceAmount(t.like.limit))
	}
	return nil
}

// once is one loop of the recommender at a time: VPAs, samples, statuses and, with deadline to come, checkpoints.
func (a *autoscaler) once(ctx context.Context, at time.Time) error {
	if err := a.load(); err != nil {
		return err
	}
	for _, t := range a.workloads {
		if err := a.measure(t, at); err != nil {
			return err
		}
	}
	a.recommender.UpdateVPAs()
	a.recommender.MaintainCheckpoints(ctx)
	return nil
}

func (a *autoscaler) remember() error {
	for _, t := range a.workloads {
		var failed error
		loopSchedule.each(func(at time.Time) {
			if failed == nil {
				failed = a.measure(t, at)
			}
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}

// VerticalPodAutoscalers and VerticalPodAutoscalerCheckpoints are VPA's clients.
func (a *autoscaler) VerticalPodAutoscalers(string) vpaclient.VerticalPodAutoscalerInterface {
	return statuses{of: a}
}

func (a *autoscaler) VerticalPodAutoscalerCheckpoints(string) vpaclient.VerticalPodAutoscalerCheckpointInterface {
	return checkpoints{of: a}
}

// statuses takes what is written and lets the next loop see it, as the cache would.
type statuses struct {
	vpaclient.VerticalPodAutoscalerInterface
	of *autoscaler
}

func (s statuses) Patch(
	_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string,
) (*vpav1.VerticalPodAutoscaler, error) {
	var patch []struct {
		Value vpav1.VerticalPodAutoscalerStatus
	}
	if err := json.Unmarshal(data, &patch); err != nil || len(patch) != 1 {
		return nil, errors.Join(errors.New("VPA wrote something else than a status"), err)
	}
	s.of.writes.status++
	object, found := s.of.objects[name]
	if !found {
		return nil, fmt.Errorf("VPA wrote to %s, which is not there", name)
	}
	object.Status = patch[0].Value
	return object, nil
}

type checkpoints struct {
	vpaclient.VerticalPodAutoscalerCheckpointInterface
	of *autoscaler
}

func (c checkpoints) Patch(
	_ context.Context, _ string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string,
) (*vpav1.VerticalPodAutoscalerCheckpoint, error) {
	c.of.writes.checkpoints++
	c.of.checkpoints += int64(len(data))
	return nil, nil
}

// vpaLoop is a minute of the recommender, which is one loop; the mean of three.
func vpaLoop(ctx context.Context, containers, replicas int) (cost, error) {
	var a *autoscaler
	var err error
	heap := grown(func() {
		if a, err = newAutoscaler(containers/replicas, replicas); err == nil {
			err = a.remember()
		}
	})
	if err != nil {
		return cost{}, err
	}
	const loops = 3
	pass, err := processorTime(func() error {
		for i := range loops {
			a.checkpoints = 0
			if err := a.once(ctx, epoch.Add(time.Duration(i)*time.Minute)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && a.writes.checkpoints != int64(loops*len(a.workloads)) {
		err = fmt.Errorf("VPA wrote %d checkpoints in %d loops over %d VPAs", a.writes.checkpoints, loops, len(a.workloads))
	}
	runtime.KeepAlive(a)
	return cost{
		what: "loop", server: "vpa", containers: containers, perWorkload: replicas, pass: pass / loops, heap: heap,
		checkpoint: memory.Bytes(a.checkpoints),
	}, err
}
