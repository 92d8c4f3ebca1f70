// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

// recordVersion is incremented when the meaning of a field changes. memfit ignores a record of another version, so the
// recorded values then count as the user's.
const recordVersion = 1

// recordMax bounds the annotation, in bytes. A longer record is written without the reasons for skipped settings.
const recordMax = 32 << 10

// record is the value of the memfit.dev/injected annotation, as compact JSON. It has memfit's changes of the pod, so
// that memfit can revert exactly these, and the reasons for skipped settings.
type record struct {
	Version    int    `json:"v"`
	Profile    string `json:"profile"`
	Generation int64  `json:"generation,omitempty"`
	// Pod is memfit's size of the whole pod (spec.resources), and the previous one.
	Pod        *sizeRecord                 `json:"pod,omitempty"`
	Containers map[string]*containerRecord `json:"containers,omitempty"`
}

// containerRecord is the part about one container.
type containerRecord struct {
	DryRun bool `json:"dryRun,omitempty"` // Set was planned and not written
	// Limit is the effective limit of one process that settings were derived from, a quantity; empty: no limit.
	Limit        string      `json:"limit,omitempty"`
	LimitFrom    string      `json:"limitFrom,omitempty"`    // the computation of Limit; empty: the container's own limit
	Owner        *sizeRecord `json:"owner,omitempty"`        // the owner's memory size of the container
	Processes    int32       `json:"processes,omitempty"`    // the number of processes, each with Limit; 0: one
	Program      string      `json:"program,omitempty"`      // the fingerprint of the container's program; see [Program]
	Image        string      `json:"image,omitempty"`        // the image at admission
	ResizePolicy string      `json:"resizePolicy,omitempty"` // the memory resizePolicy that memfit added
	Runtime      string      `json:"runtime,omitempty"`      // the assumed runtime of the container, and its source
	// Set has the text that memfit wrote, by variable: the whole value, or the words before the user's.
	Set     map[string]string `json:"set,omitempty"`
	Size    *sizeRecord       `json:"size,omitempty"`    // memfit's memory request and limit, and the previous ones
	Skipped map[string]string `json:"skipped,omitempty"` // the reason for each setting that was skipped
	// UserChanged are variables that were removed or changed after memfit had set them. They are not set again.
	UserChanged []string `json:"taken,omitempty"`
	// Was has the text that Set replaced, by variable.
	Was map[string]string `json:"was,omitempty"`
}

// atAdmission returns the effective limit that settings were derived from; 0: unknown.
func (r *containerRecord) atAdmission() memory.Bytes {
	if r == nil {
		return 0
	}
	return parseQuantity(r.Limit)
}

// parts returns the number of processes, at least 1.
func (r *containerRecord) parts() memory.Bytes {
	if r == nil {
		return 1
	}
	return memory.Bytes(min(max(r.Processes, 1), maxProcesses)) // a record can be copied or forged
}

// maxProcesses is the bound of tuning.processes.
const maxProcesses = 256

// sizeRecord is a memory size that memfit wrote: canonical quantities, empty for not set.
type sizeRecord struct {
	Limit      string `json:"limit,omitempty"`
	Request    string `json:"request,omitempty"`
	WasLimit   string `json:"wasLimit,omitempty"`
	WasRequest string `json:"wasRequest,omitempty"`
	Why        string `json:"why,omitempty"` // the reason for a size other than the recommended one
}

// readRecord parses the annotation; nil if it is missing, or memfit cannot have written it. Annotations above the API
// server's bound come only from clients that call the webhook directly.
func readRecord(text string) *record {
	if text == "" || len(text) > annotationsMax {
		return nil
	}
	var r record
	if json.Unmarshal([]byte(text), &r) != nil || r.Version != recordVersion {
		return nil
	}
	if r.Pod.added() {
		r.Pod = nil
	}
	return &r
}

func newRecord(n *profile.Profile) *record {
	return &record{
		Version: recordVersion, Profile: n.Ref.Kind + "/" + n.Ref.Name, Generation: n.Generation,
		Containers: map[string]*containerRecord{},
	}
}

func (r *record) of(container string) *containerRecord {
	if r == nil {
		return nil
	}
	return r.Containers[container]
}

// annotationsMax is the API server's bound for all annotations of an object, keys and values, in bytes.
const annotationsMax = 256 << 10

// space returns the bytes left for memfit's annotation.
func space(pod *corev1.Pod) int {
	left := annotationsMax - len(v1alpha1.InjectedAnnotation)
	for key, value := range pod.Annotations {
		if key != v1alpha1.InjectedAnnotation {
			left -= len(key) + len(value)
		}
	}
	return left
}

// text returns the annotation's value; empty if there is nothing to record. fits is false if the value exceeds the
// available bytes; memfit must then set nothing, because it could not revert changes without a record.
func (r *record) text(available int) (text string, fits bool) {
	if len(r.Containers) == 0 {
		return "", true
	}
	out := r.encode()
	if len(out) > min(recordMax, available) {
		for _, c := range r.Containers {
			c.Skipped = nil
		}
		out = r.encode()
	}
	return out, len(out) <= available
}

// encode returns compact JSON without escapes of "<" and "&", because users read it.
func (r *record) encode() string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if e.Encode(r) != nil { // plain data always encodes
		return ""
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// record returns the record of the container; nil if tuning is disabled and there is nothing to record.
func (c *ContainerPlan) record(w *working, t target) *containerRecord {
	r := &containerRecord{
		DryRun: c.mode == v1alpha1.TuningDryRun, Limit: c.limit.size, LimitFrom: c.limit.from, Processes: c.facts.Processes,
		ResizePolicy: w.resizeSet, Runtime: c.runtime.String(), Set: w.written, Was: w.was, Size: c.sized,
		UserChanged: w.userChanged, Skipped: map[string]string{},
	}
	for _, s := range c.skips {
		r.Skipped[s.name] = s.why
	}
	if c.mode == v1alpha1.TuningDisabled && r.Size == nil && len(r.Skipped) == 0 && len(r.UserChanged) == 0 {
		return nil
	}
	r.Program, r.Image, r.Owner = t.program.ID, t.container.Image, recordOf(memory.Size{}, t.program.Owner)
	return r
}
