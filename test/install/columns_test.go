// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
)

// TestColumns checks the API server's table for `kubectl get`, which has a workload's problem and why its size is not
// applied.
func TestColumns(t *testing.T) {
	createColumns(t)
	for resource, want := range map[string]string{
		"memoryprofiles": `
NAME | RUNTIME | SIZING | READY | PROBLEM | PODS | OOMS
idle | Auto | Recommend | True | NoPodsMatched | 0/0 | <none>
web | NodeJS | Recommend | True | UsageMissing | 3/3 | 2
`,
		"memoryrecommendations": `
NAME | WORKLOAD | CURRENT | RECOMMENDED | APPLIED | PROBLEM | OOMS
deployment-api | api | 512Mi | 512Mi | UpToDate | <none> | 4
deployment-web | web | 256Mi | 512Mi | ModeRecommend | OOMKilled | 2
statefulset-orders | orders | app=1Gi | app=1200Mi | LimitRange | Leak | <none>
`,
	} {
		if diff := cmp.Diff(want, "\n"+printed(t, resource)); diff != "" {
			t.Errorf("kubectl get %s (-want +got):\n%s", resource, diff)
		}
	}
}

// TestDescribe checks that `kubectl describe` prints the problem and, in a condition's message, the next step.
func TestDescribe(t *testing.T) {
	createColumns(t)
	user, err := server.env.AddUser(envtest.User{Name: "columns", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := user.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := kubectl.Run("describe", "memrec,mprof", "-n", "columns")
	if err != nil {
		text, _ := io.ReadAll(stderr)
		t.Fatalf("%v: %s", err, text)
	}
	text, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	described := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{
		"Problem: OOMKilled", "Problem: Leak", "Problem: NoPodsMatched", "Problem: UsageMissing",
		"set OnCreate to give new pods the recommended size", "or set drift.action: Restart to buy time",
	} {
		if !strings.Contains(described, want) {
			t.Errorf("kubectl describe lacks %q:\n%s", want, text)
		}
	}
}

// createColumns creates the objects of testdata/columns.yaml.
func createColumns(t *testing.T) {
	t.Helper()
	c := apiServer(t)
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "columns"},
	})); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "columns.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		status := object.DeepCopy()
		if err := c.Create(t.Context(), &object); apierrors.IsAlreadyExists(err) {
			continue // another test created it
		} else if err != nil {
			t.Fatal(err)
		}
		status.SetResourceVersion(object.GetResourceVersion())
		if err := c.Status().Update(t.Context(), status); err != nil {
			t.Fatal(err)
		}
	}
}

// printed returns the API server's table for `kubectl get`, without the age.
func printed(t *testing.T, resource string) string {
	t.Helper()
	config := rest.CopyConfig(server.config)
	config.GroupVersion, config.APIPath = &v1alpha1.GroupVersion, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	rc, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	raw, err := rc.Get().Namespace("columns").Resource(resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err == nil {
		err = json.Unmarshal(raw, &table)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	line := func(cell func(i int) string) {
		var cells []string
		for i, column := range table.ColumnDefinitions {
			if column.Priority == 0 && column.Name != "Age" {
				cells = append(cells, cell(i))
			}
		}
		fmt.Fprintln(&out, strings.Join(cells, " | "))
	}
	line(func(i int) string { return strings.ToUpper(table.ColumnDefinitions[i].Name) })
	for _, row := range table.Rows {
		line(func(i int) string {
			if row.Cells[i] == nil {
				return "<none>"
			}
			return fmt.Sprint(row.Cells[i])
		})
	}
	return out.String()
}
