// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/profile"
)

// Cluster is a cluster to read from.
type Cluster struct {
	client dynamic.Interface
	mapper func() (meta.RESTMapper, error)
	// Namespace is the one of -n, else of the kubeconfig's context.
	Namespace string
	// Context is the one of the kubeconfig, or that of --context; empty inside a cluster.
	Context string
}

// Reads of `export -A` come one for each workload, and client-go's default of 5 a second would make a large cluster
// wait. These are the numbers with which kubectl asks for API groups; the API server protects itself (priority and
// fairness).
const (
	queriesPerSecond = 50
	queriesAtOnce    = 300
)

// Open prepares to read from the cluster that kubectl's flags and kubeconfig name. Nothing is read yet.
func Open(flags *genericclioptions.ConfigFlags) (*Cluster, error) {
	flags.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.QPS, c.Burst, c.UserAgent = queriesPerSecond, queriesAtOnce, "kubectl-memfit"
		return c
	})
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to read from %s: %w", config.Host, err)
	}
	return &Cluster{client: client, mapper: flags.ToRESTMapper, Namespace: namespace, Context: contextOf(flags)}, nil
}

func contextOf(flags *genericclioptions.ConfigFlags) string {
	if flags.Context != nil && *flags.Context != "" {
		return *flags.Context
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "" // a name for people, and nothing else
	}
	return raw.CurrentContext
}

// Recommendations are those of a namespace, of all with "".
func (c *Cluster) Recommendations(ctx context.Context, namespace string) ([]v1alpha1.MemoryRecommendation, error) {
	return list[v1alpha1.MemoryRecommendation](ctx, c, recommendations, namespace)
}

// Checkpoints are the packed histories of a namespace, of all with "".
func (c *Cluster) Checkpoints(ctx context.Context, namespace string) ([]v1alpha1.MemoryCheckpoint, error) {
	return list[v1alpha1.MemoryCheckpoint](ctx, c, "memorycheckpoints", namespace)
}

// Profiles are the profiles of a namespace (of all with "") and those of the cluster. With an error, those that could
// be read. Each is given what it inherits from the others.
func (c *Cluster) Profiles(ctx context.Context, namespace string) ([]report.Profile, error) {
	own, err := list[v1alpha1.MemoryProfile](ctx, c, "memoryprofiles", namespace)
	if err != nil {
		return nil, err
	}
	shared, err := list[v1alpha1.ClusterMemoryProfile](ctx, c, "clustermemoryprofiles", "")
	var out []report.Profile
	for i := range own {
		out = append(out, profileOf(profile.KindNamespaced, &own[i], &own[i].Spec, &own[i].Status))
	}
	for i := range shared {
		out = append(out, profileOf(profile.KindCluster, &shared[i], &shared[i].Spec, &shared[i].Status))
	}
	all := make([]*profile.Profile, len(out))
	for i := range out {
		all[i] = &out[i].Profile
	}
	profile.Inherit(all)
	return out, err
}

func profileOf(
	kind string, object metav1.Object, spec *v1alpha1.MemoryProfileSpec, status *v1alpha1.MemoryProfileStatus,
) report.Profile {
	return report.Profile{
		Profile: profile.Profile{
			Ref: v1alpha1.ProfileReference{Kind: kind, Name: object.GetName()}, Namespace: object.GetNamespace(),
			Generation: object.GetGeneration(), Created: object.GetCreationTimestamp().Time, Spec: spec,
		},
		Status: *status,
	}
}

// Workload reads the object a recommendation is about.
func (c *Cluster) Workload(
	ctx context.Context, namespace string, ref v1alpha1.WorkloadReference,
) (*unstructured.Unstructured, error) {
	mapper, err := c.mapper()
	if err != nil {
		return nil, fmt.Errorf("asking the API server which kinds it knows: %w", err)
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("the API server does not know the kind %s of %s: %w", ref.Kind, ref.APIVersion, err)
	}
	object, err := c.client.Resource(mapping.Resource).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	return object, nil
}

// Names are the namespaces, for completion.
func (c *Cluster) Names(ctx context.Context) ([]string, error) {
	spaces, err := c.client.Resource(
		schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
	).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	names := make([]string, 0, len(spaces.Items))
	for i := range spaces.Items {
		names = append(names, spaces.Items[i].GetName())
	}
	return names, nil
}

// list reads one of memfit's kinds, in pages, so that a cluster with ten thousand workloads is not one answer of 50
// MiB.
func list[T any](ctx context.Context, c *Cluster, resource, namespace string) ([]T, error) {
	client := c.client.Resource(v1alpha1.GroupVersion.WithResource(resource)).Namespace(namespace)
	var out []T
	pages := pager.New(
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
	)
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		var item T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(
			object.(*unstructured.Unstructured).Object, &item,
		); err != nil {
			return err
		}
		out = append(out, item)
		return nil
	})
	if err != nil {
		return nil, helpful(err, resource, namespace)
	}
	return out, nil
}
