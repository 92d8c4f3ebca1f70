// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("A recommendation is a projection of the checkpoint, so that no decision changes", func() {
	var w *world
	var rec *v1alpha1.MemoryRecommendation
	BeforeEach(func() {
		w = newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingOnCreate)))
		pod := w.pod("web").Obj()
		w.applied(pod)
		w.reconciled(w.alone("web"))
		for minute := range 26 * 60 {
			w.passes(time.Minute)
			w.sampled(pod, 100*memory.MiB)
			if minute%60 == 59 {
				Expect(w.reconcile(w.alone("web"))).To(Succeed())
			}
		}
		w.restart() // from here on no samples come, so that all that is known was stored
		w.seen(pod)
		// a size near the one published is no reason to write; from here on it is what it is at this time
		expect.Deleted(w.ctx, w.client, w.reconciled(w.alone("web")))
		rec = w.reconciled(w.alone("web"))
	})

	// decided are the decisions: what the status offers to the webhook and to people, and the stored state.
	decided := func() string {
		status := &w.recommendation(w.alone("web")).Status
		stored := w.checkpoint(w.alone("web")).Status
		all := []any{status.Canary, string(stored.Published), string(stored.Sizing)}
		for _, c := range status.Containers {
			all = append(all, c.Container, c.Program, c.Decision, c.Recommended, c.NewPods, c.Owner, c.FoundRuntime,
				c.Evidence.LiveSet, c.Evidence.HeapCap, c.Evidence.Source)
		}
		for _, c := range status.Conditions {
			all = append(all, c.Type, c.Status, c.Reason)
		}
		text, err := json.MarshalIndent(all, "", " ")
		Expect(err).NotTo(HaveOccurred())
		return string(text)
	}

	It("when a field of its status is edited", func() {
		want := decided()
		Expect(rec.Status.Containers[0].NewPods).NotTo(BeNil())
		forgeries, refused := 0, []string{}
		eachField(reflect.TypeFor[v1alpha1.MemoryRecommendationStatus](), func(path []int, name string) {
			forged := w.recommendation(w.alone("web"))
			forge(reflect.ValueOf(&forged.Status).Elem(), path)
			if err := w.client.Status().Update(w.ctx, forged); err != nil { // the schema refuses it
				refused = append(refused, name)
				return
			}
			if forgeries++; forgeries%2 == 0 {
				w.restart()
				w.seen(w.pod("web").Obj())
			}
			Expect(w.reconcile(w.alone("web"))).To(Succeed())
			Expect(decided()).To(Equal(want), name)
		})
		Expect(forgeries).To(BeNumerically(">", 60), "refused: %v", refused)
	})

	It("when its status or the object is deleted", func() {
		want := decided()
		rec = w.recommendation(w.alone("web"))
		rec.Status = v1alpha1.MemoryRecommendationStatus{}
		Expect(w.client.Status().Update(w.ctx, rec)).To(Succeed())
		w.restart()
		w.seen(w.pod("web").Obj())
		Expect(w.reconcile(w.alone("web"))).To(Succeed())
		Expect(decided()).To(Equal(want))

		expect.Deleted(w.ctx, w.client, rec)
		w.restart()
		w.seen(w.pod("web").Obj())
		Expect(w.reconcile(w.alone("web"))).To(Succeed())
		Expect(decided()).To(Equal(want))
	})
})

// eachField calls f with the path of each field in which a status has a value of its own.
func eachField(of reflect.Type, f func(path []int, name string)) { fieldsOf(of, nil, "", f) }

func fieldsOf(of reflect.Type, path []int, name string, f func(path []int, name string)) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[resource.Quantity]() || of == reflect.TypeFor[metav1.Time]() {
		f(path, name)
		return
	}
	for i := range of.NumField() {
		fieldsOf(of.Field(i).Type, append(slices.Clip(path), i), name+"."+of.Field(i).Name, f)
	}
}

// forge sets the field with that path to something else. In a list it is that of the first item.
func forge(v reflect.Value, path []int) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		forge(v.Elem(), path)
		return
	}
	if v.Kind() == reflect.Slice {
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			required(v.Index(0))
		}
		forge(v.Index(0), path)
		return
	}
	if len(path) > 0 {
		forge(v.Field(path[0]), path[1:])
		return
	}
	switch p := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*p = resource.MustParse("7777Mi")
	case *metav1.Time:
		*p = metav1.NewTime(start.Add(time.Hour))
	default:
		set(v)
	}
}

func set(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.String() == "True" {
			v.SetString("False")
			return
		}
		v.SetString("Forged")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	default:
		Fail(fmt.Sprintf("no forgery for a %s", v.Type()))
	}
}

// required fills in what the schema asks of a new item of a list: texts and times that are not optional.
func required(item reflect.Value) {
	if item.Kind() != reflect.Struct {
		return
	}
	for i := range item.NumField() {
		field, tag := item.Field(i), item.Type().Field(i).Tag.Get("json")
		if strings.Contains(tag, "omitempty") {
			continue
		}
		if field.Kind() == reflect.String || field.CanInt() {
			set(field)
		}
		if at, ok := reflect.TypeAssert[*metav1.Time](field.Addr()); ok {
			*at = metav1.NewTime(start)
		}
	}
}
