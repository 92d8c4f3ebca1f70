// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsjson "sigs.k8s.io/json"

	"github.com/memfit/memfit/test/goldenpods"
)

// TestPodsAreReadAsTheAPIServerReadsThem compares the pod of a review with what the decoder of Kubernetes makes of the
// same text, for every golden pod and for texts that are unusual or not valid.
func TestPodsAreReadAsTheAPIServerReadsThem(t *testing.T) {
	inputs, err := goldenpods.Inputs()
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := goldenpods.Outputs()
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		`{}`, `null`, `{"metadata":{}}`, `{"metadata":null,"spec":null}`, `{"metadata":{},"spec":7}`,
		`{"metadata":{"Name":"a","name":"b","annotations":{"a":"\u00e9\ud800"}},"spec":{"Containers":[{}]}}`,
		`{"metadata":{"labels":null,"creationTimestamp":null,"managedFields":7}}`,
		`{"metadata":{},"spec":{"containers":[{"name":"a","resources":{}},{"name":"b","resources":null},null]}}`,
		`{"metadata":{},"spec":{"containers":[{"name":"a"},{"image":"i"}],"containers":[{"image":"j"}]}}`,
		`{"metadata":{},"spec":{"containers":[{"resources":{"limits":{"memory":1048576,"cpu":0.5}}}]}}`,
		`{"metadata":{},"spec":{"containers":[{"resources":{"limits":{},"requests":null}}],"resources":{}}}`,
		`{"metadata":{},"spec":{"containers":[{"ports":[{"containerPort":1e3}]}]}}`,
		`{"metadata":{},"spec":{"containers":[{"ports":[{"containerPort":80.5}]}]}}`,
		`{"metadata":{},"spec":{"activeDeadlineSeconds":"5"}}`,
		"{\"metadata\":{\"labels\":{\"a\":\"\xff\"}},\"spec\":{\"hostname\":\"\xc3\x28\"}}",
	}
	for _, file := range slices.Concat(inputs, outputs) {
		raw, _ := golden(t, strings.TrimSuffix(file, ".injected"))
		texts = append(texts, string(raw))
	}
	for _, text := range texts {
		asked, err := readReview(reviewOf([]byte(text)))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var want corev1.Pod
		wantErr := sigsjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &want)
		want.TypeMeta, want.Namespace, want.ManagedFields, want.Status = metav1.TypeMeta{}, "shop", nil, corev1.PodStatus{}
		if asked.Object.Metadata == nil { // refused: an API server sends none without
			continue
		}
		got, err := podOf(&asked)
		if (err != nil) != (wantErr != nil) && !strings.Contains(text, "managedFields") {
			t.Errorf("%s: error %v, of Kubernetes %v", text, err, wantErr)
		}
		if err != nil || wantErr != nil {
			continue
		}
		if diff := cmp.Diff(normal(&want), normal(got), cmp.Transformer("lists", nilLists)); diff != "" {
			t.Errorf("%s: -Kubernetes +read\n%s", text, diff)
		}
	}
}

func podOf(asked *review) (*corev1.Pod, error) {
	meta, err := asked.meta()
	if err != nil {
		return nil, err
	}
	return asked.pod(meta)
}

// nilLists makes an absent list of containers an empty one.
func nilLists(list []corev1.Container) []corev1.Container {
	if list == nil {
		return []corev1.Container{}
	}
	return list
}
