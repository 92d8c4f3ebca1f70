// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package metricsapi

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage/stream"
	"github.com/memfit/memfit/test/budget"
)

func TestDecode(t *testing.T) {
	for name, test := range map[string]struct {
		in   string
		want []memory.Bytes
	}{
		"two containers": {
			list(item("shop", "web-0", container("app", "300Mi"), container("proxy", "131072Ki"))),
			[]memory.Bytes{300 * memory.MiB, 128 * memory.MiB},
		},
		"an empty cluster": {list(), nil},
		"things before the items": {
			`{"more":{"items":[1,{"a":"]"}]},"items":[` + item("a", "b", container("c", "1Ki")) + `],"after":1}`,
			[]memory.Bytes{memory.KiB},
		},
		"no memory":                     {list(item("shop", "web-0", `{"name":"app","usage":{"cpu":"1m"}}`)), nil},
		"0 is what is not measured yet": {list(item("shop", "web-0", container("app", "0"))), nil},
		"less than nothing":             {list(item("shop", "web-0", container("app", "-5Mi"))), nil},
		"no amount":                     {list(item("shop", "web-0", container("app", "much"))), nil},
		"no time": {
			list(`{"metadata":{"name":"a","namespace":"b"},"containers":[` + container("c", "1Ki") + `]}`), nil,
		},
		"no name": {list(item("shop", "", container("app", "1Mi"))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []memory.Bytes
			err := Decode(iotest.OneByteReader(strings.NewReader(test.in)), func(s memory.Sample) {
				if s.HasRSS || s.RSS != 0 {
					t.Errorf("sample %+v claims to know RSS", s)
				}
				got = append(got, s.WorkingSet)
			})
			if err != nil || len(got) != len(test.want) {
				t.Fatalf("%v, %v, want %v", got, err, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("%v, want %v", got, test.want)
				}
			}
		})
	}
}

func TestAmountIsWhatKubernetesReads(t *testing.T) {
	for _, q := range []string{
		"0", "1", "300Mi", "131072Ki", "4Gi", "3Ti", "7Pi", "1Ei", "5k", "300M", "4G", "3T", "7P", "2E", "128974848000m",
		"1m", "1999m", "9223372036854775807", "+1", "1.5Gi", "1e3", "9Ei",
	} {
		want := memory.FromQuantity(resource.MustParse(q))
		if got := amount(q); got != want {
			t.Errorf("%s is %d bytes, want %d", q, got, want)
		}
	}
	for _, q := range []string{
		"", "m", "Mi", "-1", "1 Mi", "1MiMi", "1ki", "0x10", "1_000", "1e-99999999999", strings.Repeat("9", 65),
	} {
		if got := amount(q); got != 0 {
			t.Errorf("%q is %d bytes, want unknown", q, got)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	whole := list(item("shop", "web-0", container("app", "300Mi")))
	for name, test := range map[string]struct{ in, want string }{
		"nothing":          {"", "unexpected EOF"},
		"a page":           {"<html>", "no list of items"},
		"a status":         {`{"kind":"Status","code":500}`, "no list of items"},
		"a list":           {"[]", "no list of items"},
		"items are none":   {`{"items":{}}`, "no list of items"},
		"torn in an item":  {whole[:len(whole)-9], "unexpected EOF"},
		"torn after items": {strings.TrimSuffix(whole, "]}"), "unexpected EOF"},
		"a name is none":   {list(`{"metadata":{"name":5}}`), "unmarshal JSON number"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Decode(strings.NewReader(test.in), func(memory.Sample) {}); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q in it", err, test.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(list(item("shop", "web-0", container("app", "300Mi"), container("proxy", "1e3")))))
	f.Add([]byte(`{"items":[{"metadata":null,"timestamp":null,"containers":[null,{"usage":{"memory":"9E"}}]},null]}`))
	f.Add([]byte(list(item("shop", "web-0", container("app", "1e-99999999999")))))
	take := func(memory.Sample) {}
	// what is allocated once per process is not part of the budget
	_ = Decode(strings.NewReader(list(item("shop", "web-0", container("app", "1Mi")))), take)
	f.Fuzz(func(t *testing.T, in []byte) {
		budget.Check(t, decodeBudget, len(in), func() {
			_ = Decode(bytes.NewReader(in), func(s memory.Sample) {
				if s.WorkingSet <= 0 || s.HasRSS || s.Time.IsZero() || s.Container.Pod == "" || s.Container.Namespace == "" ||
					s.Container.Container == "" {
					t.Errorf("impossible sample %+v", s)
				}
			})
		})
	})
}

// decodeBudget is what reading a list may take.
var decodeBudget = budget.Budget{Bytes: 256 << 10, PerByte: 64, CPU: 10 * time.Second}

// repeated is a text after another one, so often.
func repeated(start, again string, times int) io.Reader {
	return io.MultiReader(strings.NewReader(start), io.LimitReader(&endless{again, ""}, int64(len(again)*times)))
}

type endless struct{ text, rest string }

func (a *endless) Read(into []byte) (int, error) {
	if a.rest == "" {
		a.rest = a.text
	}
	n := copy(into, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// TestAHostileListCostsLittle: metrics-server is another's, and its answer may have 512 MiB. What is held of it at a
// time is one pod.
func TestAHostileListCostsLittle(t *testing.T) {
	for name, c := range map[string]struct {
		in   io.Reader
		want error
	}{
		"a pod without an end":       {repeated(`{"items":[{"containers":[`, `{"name":"a"},`, 1<<20), errManyContainers},
		"something before the items": {repeated(`{"metadata":[`, `{"name":"a"},`, 1<<20), io.ErrUnexpectedEOF},
		"space":                      {repeated(`{"items":[`, ` `, 8<<20), stream.ErrLong},
		"many containers":            {repeated(`{"items":[{"containers":[{}`, `,{}`, 300), errManyContainers},
		"too many containers": {
			strings.NewReader(`{"items":[{"containers":[{}` + strings.Repeat(`,{}`, 300) + `]}]}`), errManyContainers,
		},
	} {
		var err error
		budget.Check(
			t, budget.Budget{Bytes: 8 << 20, CPU: 10 * time.Second}, 0, func() { err = Decode(c.in, func(memory.Sample) {}) },
		)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
