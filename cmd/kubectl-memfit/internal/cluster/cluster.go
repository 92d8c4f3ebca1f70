// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster reads the objects that the plugin's commands report: recommendations, profiles, snapshots, pods and
// workloads. It never writes. Its errors name what is missing (memfit, a permission, the cluster) and the fix.
package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs with auth-provider: oidc; helpful errors for gcp and azure
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/profile"
)

// Cluster reads objects of one cluster.
type Cluster struct {
	client   dynamic.Interface
	core     corev1client.CoreV1Interface // reads pods, the most numerous objects, as protobuf
	metadata metadata.Interface           // reads objects without spec and status
	mapper   func() (meta.RESTMapper, error)
	// Namespace is the namespace to read, from -n or the context of the kubeconfig; empty: all namespaces.
	Namespace string
	// Context is --context or the current context of the kubeconfig; empty inside a cluster.
	Context string
}

// kubectl has the same limits for discovery. client-go's default of 5 queries a second is too slow for `export -A`,
// which reads each workload. The API server protects itself (priority and fairness).
const (
	queriesPerSecond = 50
	queriesBurst     = 300
)

// Open returns a Cluster for kubectl's flags and the kubeconfig. It sends no request.
func Open(flags *genericclioptions.ConfigFlags) (*Cluster, error) {
	flags.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.QPS, c.Burst, c.UserAgent = queriesPerSecond, queriesBurst, "kubectl-memfit"
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
	c := &Cluster{mapper: flags.ToRESTMapper, Namespace: namespace, Context: contextOf(flags)}
	if err := c.connect(config); err != nil {
		return nil, fmt.Errorf("creating a client for %s: %w", config.Host, err)
	}
	return c, nil
}

func (c *Cluster) connect(config *rest.Config) error {
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	if c.client, err = dynamic.NewForConfigAndClient(config, connections); err != nil {
		return err
	}
	if c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), connections); err != nil {
		return err
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.core, err = corev1client.NewForConfigAndClient(protobuf, connections)
	return err
}

func contextOf(flags *genericclioptions.ConfigFlags) string {
	if flags.Context != nil && *flags.Context != "" {
		return *flags.Context
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "" // the context is only printed
	}
	return raw.CurrentContext
}

// Recommendations lists the recommendations of the namespace.
func (c *Cluster) Recommendations(ctx context.Context) ([]v1alpha1.MemoryRecommendation, error) {
	return list[v1alpha1.MemoryRecommendation](ctx, c, recommendations, c.Namespace)
}

// EachCheckpoint calls take with each checkpoint of the namespace.
func (c *Cluster) EachCheckpoint(ctx context.Context, take func(*v1alpha1.MemoryCheckpoint)) error {
	return eachOf(ctx, c, checkpoints, c.Namespace, take)
}

// Profiles lists MemoryProfiles and ClusterMemoryProfiles with defaults applied. With an error, some may be missing.
func (c *Cluster) Profiles(ctx context.Context) ([]report.Profile, error) {
	own, err := list[v1alpha1.MemoryProfile](ctx, c, "memoryprofiles", c.Namespace)
	if err != nil {
		return nil, err
	}
	shared, err := list[v1alpha1.ClusterMemoryProfile](ctx, c, "clustermemoryprofiles", "")
	var out []report.Profile
	for i := range own {
		out = append(out, report.Profile{Profile: profile.Of(&own[i]), Status: own[i].Status})
	}
	for i := range shared {
		out = append(out, report.Profile{Profile: profile.OfCluster(&shared[i]), Status: shared[i].Status})
	}
	all := make([]*profile.Profile, len(out))
	for i := range out {
		all[i] = &out[i].Profile
	}
	profile.Inherit(all)
	return out, err
}

// Workload reads the object that ref names.
func (c *Cluster) Workload(
	ctx context.Context, namespace string, ref v1alpha1.WorkloadReference,
) (*unstructured.Unstructured, error) {
	mapper, err := c.mapper()
	if err != nil {
		return nil, fmt.Errorf("reading the kinds of the API server: %w", err)
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("the API server has no kind %s of %s: %w", ref.Kind, ref.APIVersion, err)
	}
	object, err := c.client.Resource(mapping.Resource).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	return object, nil
}

// Namespaces lists the names of all namespaces, for completion. It returns none without permission to list them.
func (c *Cluster) Namespaces(ctx context.Context) []string {
	return slices.Sorted(maps.Keys(c.namespaces(ctx, "")))
}

// list returns all objects of one of memfit's kinds. Use it only for kinds with at most one object per workload.
func list[T any](ctx context.Context, c *Cluster, resource, namespace string) ([]T, error) {
	var out []T
	err := eachOf(ctx, c, resource, namespace, func(item *T) { out = append(out, *item) })
	return out, err
}

// eachOf calls take with each object of one of memfit's kinds. If it cannot decode some, it returns the last error.
func eachOf[T any](ctx context.Context, c *Cluster, resource, namespace string, take func(*T)) (undecoded error) {
	err := c.each(ctx, v1alpha1.GroupVersion.WithResource(resource), namespace, func(u *unstructured.Unstructured) {
		u.SetManagedFields(nil)
		item := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, item); err != nil {
			undecoded = fmt.Errorf("reading %s/%s: %w", u.GetNamespace(), u.GetName(), err)
			return
		}
		take(item)
	})
	if err != nil {
		return helpful(err, resource, namespace)
	}
	return undecoded
}

// each calls take with each object of a kind, as unstructured data.
func (c *Cluster) each(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, take func(*unstructured.Unstructured),
) error {
	return eachPage(ctx, c.client.Resource(resource).Namespace(namespace).List, take)
}

// eachPage calls take with each object that list returns. It reads pages of 500 objects, one page ahead, because a
// response with ten thousand workloads would have 50 MiB, and a cluster may have a hundred thousand pods.
func eachPage[L, T runtime.Object](
	ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), take func(T),
) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) })
	pages.PageBufferSize = 1
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		take(object.(T))
		return nil
	})
}

// memfitOnly returns memfit's annotations. It drops others: that of kubectl apply can be as large as the object.
func memfitOnly(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	maps.DeleteFunc(kept, func(key, _ string) bool { return !strings.HasPrefix(key, v1alpha1.Group+"/") })
	return kept
}

// roles maps a resource to the ClusterRole for its readers. memfit installs these roles and aggregates them to "view".
var roles = map[string]string{
	recommendations:         "memfit-memoryrecommendation-viewer-role",
	"memoryprofiles":        "memfit-memoryprofile-viewer-role",
	"clustermemoryprofiles": "memfit-clustermemoryprofile-viewer-role",
	snapshots:               "memfit-memorysnapshot-viewer-role",
	checkpoints:             "memfit-memoryrecommendation-viewer-role",
}

// helpful adds the fix to the error of a list request.
func helpful(err error, resource, namespace string) error {
	switch {
	case apierrors.IsNotFound(err): // a list of a served kind always exists, so the kind is missing
		return fmt.Errorf("this cluster has no %s.%s, so memfit is not installed: kubectl apply --server-side "+
			"-f dist/install.yaml (docs/guide/install.md), or name another cluster with --context: %w",
			resource, v1alpha1.Group, err)
	case apierrors.IsForbidden(err) && (namespace == "" || resource == "clustermemoryprofiles"):
		return fmt.Errorf("you may not list %s.%s in all namespaces: name one with -n, or request a ClusterRoleBinding "+
			"to view or %s: %w",
			resource, v1alpha1.Group, roles[resource], err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not list %s.%s in namespace %s; an administrator can permit it: "+
			"kubectl -n %s create rolebinding memfit-view --clusterrole=%s --user=YOU: %w",
			resource, v1alpha1.Group, namespace, namespace, roles[resource], err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("unauthorized: the credentials of the kubeconfig may have expired: %w", err)
	}
	return fmt.Errorf("listing %s.%s: %w", resource, v1alpha1.Group, err)
}
