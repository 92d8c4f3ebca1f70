// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestMonitoringComponent checks the labels and namespaces of the component's objects when added to config/default.
func TestMonitoringComponent(t *testing.T) {
	objects := build(t, "test/install/testdata/monitored")
	monitor := find(t, objects, "ServiceMonitor", "memfit-controller-manager-metrics")
	selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	service := find(t, objects, "Service", "memfit-controller-manager-metrics-service")
	for label, value := range selector {
		if service.GetLabels()[label] != value {
			t.Errorf("the ServiceMonitor selects %s=%s, the Service has %v", label, value, service.GetLabels())
		}
	}
	webhook := find(t, objects, "Service", "memfit-webhook-service")
	if webhook.GetLabels()["control-plane"] != "" {
		t.Error("the ServiceMonitor selects the webhook's Service too")
	}
	for _, object := range []built{
		monitor, find(t, objects, "PrometheusRule", "memfit"), find(t, objects, "ConfigMap", "memfit-dashboard"),
	} {
		if object.GetNamespace() != namespace {
			t.Errorf("%s is in namespace %q", object.GetKind(), object.GetNamespace())
		}
	}
}
