// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	stream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const managerName = "memfit-controller-manager"

// bundle writes a registry+v1 bundle of the Operator Lifecycle Manager from what kustomize builds. OLM makes the
// webhook's certificate and its configuration itself, knows neither namespaceSelector nor matchConditions there (the
// manager looks at both again), and lets the platform choose the user.
func bundle(args []string) error {
	flags := flag.NewFlagSet("bundle", flag.ContinueOnError)
	version := flags.String("version", "", "version without v, 0.1.0")
	manifests := flags.String("manifests", "", "what make build-installer wrote, of config/default")
	samples := flags.String("samples", "config/samples", "folder with profiles to show")
	out := flags.String("o", "bundle", "folder to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*manifests)
	if err != nil {
		return err
	}
	objects, err := decode(text)
	if err != nil {
		return fmt.Errorf("reading %s: %w", *manifests, err)
	}
	examples, err := profiles(*samples)
	if err != nil {
		return err
	}
	csv, others, err := split(objects)
	if err != nil {
		return err
	}
	described, err := csv.describe(*version, examples)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(*out); err != nil {
		return err
	}
	files := map[string]any{
		"manifests/memfit.clusterserviceversion.yaml": described,
		"metadata/annotations.yaml":                   map[string]any{"annotations": bundleAnnotations},
	}
	for _, o := range others {
		name := strings.ToLower(o.GetName() + "_" + o.GetKind() + ".yaml")
		files["manifests/"+name] = o.Object
	}
	for name, content := range files {
		text, err := yaml.Marshal(content)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(*out, name), text); err != nil {
			return err
		}
	}
	return write(filepath.Join(*out, "bundle.Dockerfile"), dockerfile())
}

// dockerfile builds the bundle's image, which has no program: OLM reads its files and its labels.
func dockerfile() []byte {
	var out strings.Builder
	out.WriteString("# docker build -f bundle.Dockerfile . in this folder\nFROM scratch\n")
	for _, key := range slices.Sorted(maps.Keys(bundleAnnotations)) {
		out.WriteString("LABEL " + key + "=" + bundleAnnotations[key] + "\n")
	}
	out.WriteString("COPY manifests /manifests/\nCOPY metadata /metadata/\n")
	return []byte(out.String())
}

// bundleAnnotations are those of metadata/annotations.yaml, and the labels of the bundle's image.
var bundleAnnotations = map[string]string{
	"operators.operatorframework.io.bundle.mediatype.v1":       "registry+v1",
	"operators.operatorframework.io.bundle.manifests.v1":       "manifests/",
	"operators.operatorframework.io.bundle.metadata.v1":        "metadata/",
	"operators.operatorframework.io.bundle.package.v1":         "memfit",
	"operators.operatorframework.io.bundle.channels.v1":        "alpha",
	"operators.operatorframework.io.bundle.channel.default.v1": "alpha",
}

// serviceVersion is what the ClusterServiceVersion is made of.
type serviceVersion struct {
	manager            appsv1.Deployment
	cluster, namespace []rbacv1.PolicyRule
	hooks              []any
	owned              []any
}

// split sorts objects into what the ClusterServiceVersion holds and what stands beside it.
func split(objects []unstructured.Unstructured) (serviceVersion, []unstructured.Unstructured, error) {
	var csv serviceVersion
	var others []unstructured.Unstructured
	clusterRoles, roles := map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	var errs []error
	for _, o := range objects {
		switch kind := o.GetKind(); kind {
		case "Namespace", "Issuer", "Certificate": // OLM's own business
		case "Service":
			if o.GetName() != "memfit-webhook-service" {
				others = append(others, o)
			}
		case "Deployment":
			errs = append(errs, into(o, &csv.manager))
		case "MutatingWebhookConfiguration":
			var c admissionregistrationv1.MutatingWebhookConfiguration
			errs = append(errs, into(o, &c))
			for _, w := range c.Webhooks {
				d := hook("MutatingAdmissionWebhook", w.Name, w.ClientConfig.Service.Path, w.Rules, w.TimeoutSeconds)
				d["reinvocationPolicy"] = w.ReinvocationPolicy
				csv.hooks = append(csv.hooks, d)
			}
		case "ValidatingWebhookConfiguration":
			var c admissionregistrationv1.ValidatingWebhookConfiguration
			errs = append(errs, into(o, &c))
			for _, w := range c.Webhooks {
				csv.hooks = append(
					csv.hooks,
					hook("ValidatingAdmissionWebhook", w.Name, w.ClientConfig.Service.Path, w.Rules, w.TimeoutSeconds),
				)
			}
		case "CustomResourceDefinition":
			csv.owned = append(csv.owned, owned(o))
			others = append(others, o)
		case "ClusterRole", "Role":
			var r rbacv1.ClusterRole
			errs = append(errs, into(o, &r))
			if kind == "Role" {
				roles[o.GetName()] = r.Rules
			} else {
				clusterRoles[o.GetName()] = r.Rules
			}
			others = append(others, o)
		case "ServiceAccount":
			if o.GetName() != managerName {
				others = append(others, o)
			}
		default:
			others = append(others, o)
		}
	}
	others = slices.DeleteFunc(others, func(o unstructured.Unstructured) bool {
		if !strings.HasSuffix(o.GetKind(), "RoleBinding") {
			return false
		}
		var b rbacv1.ClusterRoleBinding
		errs = append(errs, into(o, &b))
		if b.Subjects[0].Name != managerName {
			return false
		}
		// What the manager holds, OLM grants from the ClusterServiceVersion.
		if o.GetKind() == "RoleBinding" {
			csv.namespace = append(csv.namespace, roles[b.RoleRef.Name]...)
			delete(roles, b.RoleRef.Name)
		} else {
			csv.cluster = append(csv.cluster, clusterRoles[b.RoleRef.Name]...)
			delete(clusterRoles, b.RoleRef.Name)
		}
		return true
	})
	others = slices.DeleteFunc(others, func(o unstructured.Unstructured) bool {
		return o.GetKind() == "Role" && roles[o.GetName()] == nil ||
			o.GetKind() == "ClusterRole" && clusterRoles[o.GetName()] == nil
	})
	if csv.manager.Name == "" {
		errs = append(errs, errors.New("there is no Deployment "+managerName))
	}
	return csv, others, errors.Join(errs...)
}

func hook(
	kind, name string, path *string, rules []admissionregistrationv1.RuleWithOperations, timeout *int32,
) map[string]any {
	return map[string]any{
		"type": kind, "generateName": name, "deploymentName": managerName, "containerPort": 443, "targetPort": 9443,
		"admissionReviewVersions": []string{"v1"}, "failurePolicy": "Ignore", "sideEffects": "None",
		"webhookPath": path, "rules": rules, "timeoutSeconds": timeout,
	}
}

func owned(crd unstructured.Unstructured) map[string]any {
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	version, about := "", ""
	if first, ok := versions[0].(map[string]any); ok {
		version, _, _ = unstructured.NestedString(first, "name")
		about, _, _ = unstructured.NestedString(first, "schema", "openAPIV3Schema", "description")
	}
	return map[string]any{
		"name": crd.GetName(), "kind": kind, "version": version, "displayName": kind,
		"description": strings.ReplaceAll(about, "\n", " "),
	}
}

// describe is the ClusterServiceVersion.
func (c *serviceVersion) describe(version string, examples []any) (map[string]any, error) {
	spec := c.manager.Spec.DeepCopy()
	pod := &spec.Template.Spec
	// The platform chooses, and OLM mounts the webhook's certificate where the manager looks for it.
	pod.SecurityContext.RunAsUser, pod.SecurityContext.RunAsGroup, pod.SecurityContext.FSGroup = nil, nil, nil
	certs := func(name string) bool { return name == "webhook-certs" || name == "metrics-certs" }
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return certs(v.Name) })
	for i := range pod.Containers {
		m := &pod.Containers[i]
		m.VolumeMounts = slices.DeleteFunc(m.VolumeMounts, func(v corev1.VolumeMount) bool { return certs(v.Name) })
		m.Args = slices.DeleteFunc(m.Args, func(a string) bool { return strings.HasPrefix(a, "--metrics-cert-path") })
	}
	shown, err := json.Marshal(examples)
	if err != nil {
		return nil, err
	}
	image := pod.Containers[0].Image
	account := pod.ServiceAccountName
	return map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1",
		"kind":       "ClusterServiceVersion",
		"metadata": map[string]any{
			"name":      "memfit.v" + version,
			"namespace": "placeholder",
			"annotations": map[string]string{
				"alm-examples": string(shown), "capabilities": "Basic Install", "categories": "Monitoring,Developer Tools",
				"containerImage": image, "repository": "https://github.com/memfit/memfit",
				"operatorframework.io/suggested-namespace": "memfit-system",
			},
		},
		"spec": map[string]any{
			"displayName": "memfit", "version": version, "maturity": "alpha", "minKubeVersion": "1.34.0",
			"description": "Keeps a container's memory limit and the runtime inside the container in step.",
			"keywords":    []string{"memory", "oom", "right-sizing", "jvm", "nodejs"},
			"provider":    map[string]string{"name": "The memfit authors"},
			"links":       []any{map[string]string{"name": "memfit", "url": "https://github.com/memfit/memfit"}},
			"installModes": []any{
				map[string]any{"type": "OwnNamespace", "supported": false},
				map[string]any{"type": "SingleNamespace", "supported": false},
				map[string]any{"type": "MultiNamespace", "supported": false},
				map[string]any{"type": "AllNamespaces", "supported": true},
			},
			"customresourcedefinitions": map[string]any{"owned": c.owned},
			"webhookdefinitions":        c.hooks,
			"relatedImages":             []any{map[string]string{"name": "manager", "image": image}},
			"install": map[string]any{
				"strategy": "deployment",
				"spec": map[string]any{
					"clusterPermissions": []any{map[string]any{"serviceAccountName": account, "rules": c.cluster}},
					"permissions":        []any{map[string]any{"serviceAccountName": account, "rules": c.namespace}},
					"deployments":        []any{map[string]any{"name": c.manager.Name, "label": c.manager.Labels, "spec": spec}},
				},
			},
		},
	}, nil
}

func into(o unstructured.Unstructured, typed any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// profiles are the profiles among the samples.
func profiles(dir string) ([]any, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var found []any
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		for _, o := range objects {
			if strings.HasPrefix(o.GetAPIVersion(), "memfit.dev/") {
				found = append(found, o.Object)
			}
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no profile in " + dir)
	}
	return found, nil
}

func decode(manifests []byte) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	for decoder := stream.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		var o unstructured.Unstructured
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case o.Object != nil:
			objects = append(objects, o)
		}
	}
}
