// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
	"github.com/memfit/memfit/test/budget"
)

// server answers queries by how they begin, at /prometheus/api/v1/..., as Mimir does.
type server struct {
	*httptest.Server
	answers map[string]string // how the query begins -> result
	asked   []*http.Request   // with their forms parsed
}

func serving(t *testing.T, answers map[string]string) *server {
	t.Helper()
	s := &server{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || !strings.HasPrefix(r.URL.Path, "/prometheus/api/v1/") {
		http.NotFound(w, r)
		return
	}
	s.asked = append(s.asked, r)
	kind := "vector"
	if strings.HasSuffix(r.URL.Path, "query_range") {
		kind = "matrix"
	}
	found := ""
	for word := range s.answers {
		if strings.HasPrefix(r.Form.Get("query"), word) {
			found = word
		}
	}
	_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"%s","result":[%s]}}`, kind, s.answers[found])
}

func (s *server) source(t *testing.T, change func(*Options)) *Source {
	t.Helper()
	o := Options{URL: s.URL + "/prometheus"}
	if change != nil {
		change(&o)
	}
	source, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

const (
	uid    = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
	labels = `"namespace":"shop","pod":"web-6d4cf-x2x4z","container":"app"`
	c1     = `"id":"/kubepods/pod` + uid + `/c1",` + labels
	c2     = `"id":"/kubepods/pod` + uid + `/c2",` + labels
)

var (
	node = usage.Node{Name: "n1", Address: "10.0.0.1"}
	app  = memory.ContainerRef{Namespace: "shop", Pod: "web-6d4cf-x2x4z", UID: uid, Container: "app"}
)

// at is one instant value; values are all asked for at second 1000.
func at(labels, value string) string {
	return fmt.Sprintf(`{"metric":{%s},"value":[1000,"%s"]}`, labels, value)
}

func sec(n int64) time.Time { return time.Unix(n, 0).UTC() }

func TestRead(t *testing.T) {
	for name, test := range map[string]struct {
		answers map[string]string
		swaps   bool
		want    []memory.Sample
	}{
		"RSS, working set and the time of both": {
			answers: map[string]string{
				"container_memory_rss": at(c1, "300"), "container_memory_working_set_bytes": at(c1, "4e2"),
				"timestamp(": at(c1, "990.5"),
			},
			want: []memory.Sample{{Container: app, Time: time.UnixMilli(990500).UTC(), RSS: 300, HasRSS: true, WorkingSet: 400}},
		},
		"what is swapped out": {
			answers: map[string]string{
				"container_memory_rss": at(c1, "300"), "container_memory_working_set_bytes": at(c1, "400"),
				"container_memory_swap": at(c1, "55"),
			},
			want: []memory.Sample{{Container: app, Time: sec(1000), RSS: 300, HasRSS: true, Swap: 55, WorkingSet: 400}},
		},
		"usage without page cache, and swap: an exact demand": {
			answers: map[string]string{
				"container_memory_rss": at(c1, "300"), "container_memory_working_set_bytes": at(c1, "400"),
				"container_memory_swap": at(c1, "55"), "container_memory_usage_bytes": at(c1, "370"),
			},
			want: []memory.Sample{{
				Container: app, Time: sec(1000), RSS: 300, HasRSS: true, Swap: 55, WorkingSet: 400, SharedAndKernel: 70,
				Exact: true,
			}},
		},
		"no times: measured when asked": {
			answers: map[string]string{
				"container_memory_rss": at(c1, "300"), "container_memory_working_set_bytes": at(c1, "400"),
			},
			want: []memory.Sample{{Container: app, Time: sec(1000), RSS: 300, HasRSS: true, WorkingSet: 400}},
		},
		"a Prometheus that drops RSS": {
			answers: map[string]string{"container_memory_working_set_bytes": at(c1, "400")},
			want:    []memory.Sample{{Container: app, Time: sec(1000), WorkingSet: 400}},
		},
		"RSS is no number: unknown, not 0": {
			answers: map[string]string{
				"container_memory_rss": at(c1, "NaN"), "container_memory_working_set_bytes": at(c1, "400"),
			},
			want: []memory.Sample{{Container: app, Time: sec(1000), WorkingSet: 400}},
		},
		"right after a restart the newer life counts": {
			answers: map[string]string{
				"container_memory_rss":               at(c1, "900") + "," + at(c2, "100"),
				"container_memory_working_set_bytes": at(c1, "950") + "," + at(c2, "150"),
				"timestamp(":                         at(c1, "900") + "," + at(c2, "990"),
			},
			want: []memory.Sample{{Container: app, Time: sec(990), RSS: 100, HasRSS: true, WorkingSet: 150}},
		},
		"no cgroup path, no UID, so no sample; no container, no sample; zeros are left over from the dead": {
			answers: map[string]string{
				"container_memory_rss": strings.Join([]string{
					at(c1, "200"), at(labels, "300"), at(`"namespace":"shop","pod":"web-0"`, "300"),
					at(`"namespace":"shop","pod":"web-0","container":"POD"`, "1"),
					at(`"namespace":"shop","pod":"gone","container":"app"`, "0"),
				}, ","),
			},
			want: []memory.Sample{{Container: app, Time: sec(1000), RSS: 200, HasRSS: true}},
		},
		"a node with swap, of which the series are dropped: no exact demand": {
			swaps: true,
			answers: map[string]string{
				"container_memory_rss": at(c1, "300"), "container_memory_working_set_bytes": at(c1, "400"),
				"container_memory_usage_bytes": at(c1, "370"),
			},
			want: []memory.Sample{{
				Container: app, Time: sec(1000), RSS: 300, HasRSS: true, WorkingSet: 400, SharedAndKernel: 70,
			}},
		},
		"a node with swap, of which none is used": {
			swaps: true,
			answers: map[string]string{
				"container_memory_rss": at(c1, "300"), "container_memory_working_set_bytes": at(c1, "400"),
				"container_memory_swap": at(c1, "0"), "container_memory_usage_bytes": at(c1, "370"),
			},
			want: []memory.Sample{{
				Container: app, Time: sec(1000), RSS: 300, HasRSS: true, WorkingSet: 400, SharedAndKernel: 70, Exact: true,
			}},
		},
		"a node without swap": {
			answers: map[string]string{
				"container_memory_rss": at(c1, "300"), "container_memory_working_set_bytes": at(c1, "400"),
				"container_memory_usage_bytes": at(c1, "370"),
			},
			want: []memory.Sample{{
				Container: app, Time: sec(1000), RSS: 300, HasRSS: true, WorkingSet: 400, SharedAndKernel: 70, Exact: true,
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := node
			of.Swaps = test.swaps
			got, err := serving(t, test.answers).source(t, nil).Read(t.Context(), of)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(
				usage.Reading{Samples: test.want, Source: "prometheus"}, got,
			); diff != "" {
				t.Errorf("reading (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadAsksUnderBothLabels(t *testing.T) {
	s := serving(t, map[string]string{"container_memory_rss": at(c1, "300")})
	if _, err := s.source(t, nil).Read(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	want := `container_memory_rss{container!="",container!="POD",node="n1"} or ` +
		`container_memory_rss{container!="",container!="POD",instance=~"\\[?(n1|10\\.0\\.0\\.1)\\]?(:[0-9]+)?"}`
	if got := s.asked[0].Form.Get("query"); got != want {
		t.Errorf("asked\n%s\nwant\n%s", got, want)
	}
}

func TestReadOfAnEmptyNodeIsAnError(t *testing.T) {
	_, err := serving(t, nil).source(t, nil).Read(t.Context(), node)
	if err == nil || !strings.Contains(err.Error(), "of node n1 has no container: check that it is scraped") {
		t.Errorf("error is %v", err)
	}
}

// TestSeriesWithoutAPodsUIDAreAnError: no pod would get these samples, and nobody would know why.
func TestSeriesWithoutAPodsUIDAreAnError(t *testing.T) {
	for name, of := range map[string]string{"no id": labels, "another id": `"id":"/system.slice/x",` + labels} {
		_, err := serving(t, map[string]string{"container_memory_rss": at(of, "300")}).source(t, nil).Read(t.Context(), node)
		if err == nil || !strings.Contains(err.Error(), "has no label id with the cgroup path of a pod (1 series)") ||
			!strings.Contains(err.Error(), "labeldrop") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestReadSendsCredentials(t *testing.T) {
	s := serving(t, map[string]string{"container_memory_rss": at(c1, "300")})
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("the-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	source := s.source(
		t, func(o *Options) { o.BearerTokenFile, o.Headers = token, map[string]string{"X-Scope-OrgID": "shop"} },
	)
	if _, err := source.Read(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.asked {
		if r.Header.Get("Authorization") != "Bearer the-token" || r.Header.Get("X-Scope-OrgID") != "shop" {
			t.Errorf("%s came with %v", r.URL, r.Header)
		}
	}
}

func TestReadWithOwnQueries(t *testing.T) {
	s := serving(t, map[string]string{"my_rss": at(c1, "300")})
	source := s.source(t, func(o *Options) {
		o.Queries = Queries{"RSS": `my_rss{host={{.Node}}}`, "WorkingSet": `my_ws{host={{.Node}}}`}
	})
	evil := usage.Node{Name: `"} or vector(1) or x{y="`}
	if _, err := source.Read(t.Context(), evil); err != nil {
		t.Fatal(err)
	}
	if got, want := s.asked[0].Form.Get("query"), `my_rss{host="\"} or vector(1) or x{y=\""}`; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

func TestReadSaysWhatToDo(t *testing.T) {
	say := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"401": {say(401, "no"), "refuses the credentials"},
		"403": {say(403, "no"), "refuses the credentials"},
		"404": {say(404, "404 page not found"), "Mimir needs /prometheus"},
		"bad PromQL": {
			say(400, `{"status":"error","errorType":"bad_data","error":"parse error at char 5"}`),
			"parse error at char 5. The query RSS is container_memory_rss{",
		},
		"overloaded": {say(503, `{"status":"error","errorType":"timeout","error":"query timed out"}`), "slow or overloaded"},
		"a page":     {say(200, "<html>"), "is not a Prometheus HTTP API"},
		"no JSON": {
			say(200, `{"status":"success","data":{"resultType":"vector","result":[{"metric"`),
			"is not a Prometheus HTTP API",
		},
		"a scalar":    {say(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`), "returns no vector"},
		"without end": {say(200, strings.Repeat(" ", 300<<10)), "exceeds 256Ki"},
		"for ever": {
			func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() },
			"No answer in time",
		},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
		}, "it redirects"},
		"a book of why": {say(500, strings.Repeat("book ", 9999)), "500"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.answer)
			defer server.Close()
			source, err := New(Options{URL: server.URL + "/x", Timeout: 200 * time.Millisecond, MaxBytes: 256 * memory.KiB})
			if err != nil {
				t.Fatal(err)
			}
			_, err = source.Read(t.Context(), node)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range []string{test.want, "prometheus at " + strings.TrimPrefix(server.URL, "http://") + "/x: "} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error is\n%s\nwithout %q", err, want)
				}
			}
			if len(err.Error()) > 700 {
				t.Errorf("error has %d characters: nobody reads that at night", len(err.Error()))
			}
		})
	}
}

// TestCount: as of an alerting rule, whatever the values.
func TestCount(t *testing.T) {
	s := serving(t, map[string]string{"errors": at(c1, "0") + "," + at(c2, "7")})
	for query, want := range map[string]int{"errors": 2, "nothing": 0} {
		if got, err := s.source(t, nil).Count(t.Context(), query); err != nil || got != want {
			t.Errorf("%s: %d (%v), want %d", query, got, err, want)
		}
	}
	scalar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"scalar","result":[1000,"1"]}}`)
	}))
	defer scalar.Close()
	source, err := New(Options{URL: scalar.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Count(t.Context(), "1"); err == nil || !strings.Contains(err.Error(), "1 gives a scalar; write") {
		t.Error(err)
	}
}

func TestReadNowhere(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	tls := httptest.NewUnstartedServer(nil)
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are the point
	tls.StartTLS()
	defer tls.Close()
	for url, want := range map[string]string{closed.URL: "No server is listening", tls.URL: "name the CA file"} {
		source, err := New(Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = source.Read(t.Context(), node); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, o := range map[string]Options{
		"write it as http://HOST:PORT": {URL: "prometheus:9090"},
		`"ftp://user:xxxxx@host"`:      {URL: "ftp://user:secret@host"},
		"missing protocol scheme":      {URL: ":"},
		"the Prometheus query RSS":     {URL: "http://p", Queries: Queries{"RSS": "{{.Node"}},
		`no entry for key "Nodes"`:     {URL: "http://p", Queries: Queries{"Time": "x{{.Nodes}}"}},
		"/nowhere/ca.crt":              {URL: "http://p", CAFile: "/nowhere/ca.crt"},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v gives %v, want %q in it", o, err, want)
		}
	}
}

// FuzzRead: whatever a server answers, reading it neither panics nor makes up containers.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"status":"success","data":{"resultType":"vector","result":[` + at(c1, "300") + `]}}`))
	f.Add(
		[]byte(
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{` + c1 +
				`},"values":[[1,"2"],[3,"NaN"]]}]}}`,
		),
	)
	f.Add(
		[]byte(
			`{"status":"success","warnings":["x"],"data":{"resultType":"vector","result":[null,{"metric":null,"value":[1e99,"-Inf"]}]}}`,
		),
	)
	f.Add([]byte(`{"status":"error","errorType":"timeout","error":"x"}`))
	f.Add([]byte(`{"status":"success","data":{"resultType":"scalar","result":null}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		source, err := New(Options{URL: "http://p"})
		if err != nil {
			t.Fatal(err)
		}
		canned(source, in)
		check := func(s memory.Sample) {
			if s.Container.Namespace == "" || s.Container.Pod == "" || s.Container.Container == "" || s.RSS < 0 ||
				s.WorkingSet < 0 {
				t.Errorf("impossible sample %+v", s)
			}
		}
		// An answer is read three times for a node and four times for a workload.
		budget.Check(t, budget.Budget{Bytes: 1 << 20, PerByte: 1024, CPU: time.Second}, len(in), func() {
			if r, err := source.Read(t.Context(), node); err == nil {
				for _, s := range r.Samples {
					check(s)
				}
			}
			_ = source.History(t.Context(), web, Span{From: sec(0), To: sec(3600)}, check)
		})
	})
}
