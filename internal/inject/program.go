// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

// Program identifies the program of a container, with the owner's memory size.
type Program struct {
	// ID is a fingerprint of image, command, args, env and envFrom without memfit's settings, and of the profile's
	// tuning, which changes the program's behavior. It excludes labels, annotations, resources and the pod's name.
	ID    string
	Owner memory.Size // the container's memory without memfit; 0: not set
	// Recorded is true if memfit recorded ID and Owner at creation. Otherwise Owner is the current size, which a resize
	// may have changed.
	Recorded  bool
	Created   memory.Bytes // the limit at creation, memfit's or the owner's; 0: unknown
	Requested memory.Bytes // the request that memfit set at creation; 0: none
	Changed   bool         // the image was changed in place, so the size is for another program
}

// ProgramOf returns the program of a container of an existing pod; zero: no such container. perRun: see [Input].
func ProgramOf(pod *corev1.Pod, name string, perRun bool) Program {
	c, _ := constraints.Find(pod, name)
	if c == nil {
		return Program{}
	}
	rec := readRecord(pod.Annotations[v1alpha1.InjectedAnnotation]).of(name)
	if rec == nil || rec.Program == "" || len(rec.Program) > 2*programBytes {
		id := fingerprint(pod.Name, c, revertChanges(c, rec), v1alpha1.TuningSpec{}, perRun)
		return Program{ID: id, Owner: constraints.SizeOf(&c.Resources), Created: rec.created()}
	}
	p := Program{
		ID: rec.Program, Owner: rec.Owner.size(), Recorded: true, Created: rec.created(), Requested: rec.Size.size().Request,
	}
	// Of the hashed fields, only the image can change in a running pod. The record includes the changes of later webhooks,
	// because the API server calls memfit again after them (reinvocationPolicy: IfNeeded).
	if rec.Image != "" && rec.Image != c.Image {
		p.ID, p.Changed = fingerprint(pod.Name, c, revertChanges(c, rec), v1alpha1.TuningSpec{}, perRun), true
	}
	return p
}

// LimitAtCreation returns [Program.Created] of a container of a pod.
func LimitAtCreation(pod *corev1.Pod, name string) memory.Bytes {
	return readRecord(pod.Annotations[v1alpha1.InjectedAnnotation]).of(name).created()
}

func (r *containerRecord) created() memory.Bytes {
	if r == nil {
		return 0
	}
	return cmp.Or(r.Size.size().Limit, r.Owner.size().Limit) // Size has no limit if memfit did not change it
}

// Offer is the size for new pods of a container, with the program whose usage it is based on.
type Offer struct {
	Program     string      // the ID of that program; empty: the size is for every program
	Owner       memory.Size // the owner's size of the container when its usage was measured
	Size        memory.Size // the size for new pods of Program while the owner's size is unchanged
	Recommended memory.Size // the recommendation regardless of the owner's size; zero: none
	Others      []Offer     // offers for other programs, each only for its Program and Owner
}

// Raised returns o with a size of at least size for pods of a program and its owner's size.
func (o Offer) Raised(of Program, size memory.Size) Offer {
	if o.Program == of.ID {
		o.Size, o.Recommended = o.Size.Max(size), o.Recommended.Max(size)
		return o
	}
	size = size.Max(o.sizeFor(of.ID, of.Owner))
	o.Others = append([]Offer{{Program: of.ID, Owner: of.Owner, Size: size}}, o.Others...) // sizeFor uses the first match
	return o
}

// sizeFor returns the size for a new pod; zero: the owner's size remains. A size that the owner changed remains, unless
// usage of the same program shows that it needs more. Usage of another program can only raise an unchanged size.
func (o Offer) sizeFor(program string, owner memory.Size) memory.Size {
	for _, other := range o.Others {
		if other.Program == program && other.Owner == owner {
			return Increase(owner, other.Size)
		}
	}
	switch {
	case o.Program == "":
		return o.Size
	case o.Program == program && o.Owner == owner:
		return o.Size
	case o.Program == program:
		return Increase(owner, o.Recommended)
	case o.Owner == owner:
		return Increase(owner, o.Size)
	}
	return memory.Size{}
}

// Increase returns the larger of both requests and limits; zero if the owner's are not smaller.
func Increase(owner, to memory.Size) memory.Size {
	more := memory.Size{Request: max(owner.Request, to.Request)}
	if owner.Limit > 0 { // no limit exceeds any limit
		more.Limit = max(owner.Limit, to.Limit)
	}
	if more == owner {
		return memory.Size{}
	}
	return more
}

// fingerprint returns the fingerprint of a container at admission.
func (t *target) fingerprint(pod string, perRun bool) string {
	tuning := t.policy.Tuning
	if tuning.Mode != v1alpha1.TuningInject {
		tuning = v1alpha1.TuningSpec{} // the program runs without memfit's settings
	}
	return fingerprint(pod, t.container, t.work, tuning, perRun)
}

// programBytes is the length of a fingerprint, which only distinguishes the few programs of a container.
const programBytes = 8

// fingerprint hashes the owner's fields of a container; pod is the pod's name. Each part is preceded by its length, so
// that different lists have different hashes. With perRun only image and tuning count; see [Input].
func fingerprint(pod string, c *corev1.Container, w *working, tuning v1alpha1.TuningSpec, perRun bool) string {
	var text hashed
	text.add(c.Image)
	if !perRun {
		text.pod = pod
		text.addWritten(c, w)
	}
	if tuning.Mode != "" {
		text.addJSON(&tuning)
	}
	sum := sha256.Sum256(text.all)
	return hex.EncodeToString(sum[:programBytes])
}

// hashed collects the text to hash.
type hashed struct {
	all []byte
	pod string // the pod's name, which is hashed as podNameToken; empty: none
}

// podNameToken replaces a pod's name, which CloudNativePG, for example, writes into the environment of each instance.
const podNameToken = "$(POD)"

// isPodName reports whether a text is the name of the pod, or of a replica with another ordinal.
func isPodName(text, pod string) bool {
	const digits = "0123456789"
	base := strings.TrimRight(pod, digits)
	ordinal, sibling := strings.CutPrefix(text, base)
	return text == pod ||
		sibling && strings.HasSuffix(base, "-") && ordinal != "" && strings.Trim(ordinal, digits) == ""
}

// addWritten adds command, args, env and envFrom, without memfit's settings.
func (h *hashed) addWritten(c *corev1.Container, w *working) {
	h.addAll(c.Command)
	h.addAll(c.Args)
	env := slices.DeleteFunc(slices.Clone(w.env), func(v Variable) bool { return v.Absent })
	// Other webhooks may add variables before memfit or after it.
	slices.SortStableFunc(env, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	for i := range env {
		v := &env[i]
		h.add(v.Name)
		if variables[v.Name] != nil { // a list of settings, to which other webhooks append
			h.addAll(strings.Fields(v.Value))
		} else {
			h.add(v.Value)
		}
		if v.ValueFrom != nil {
			h.addJSON(v.ValueFrom)
		}
	}
	for i := range c.EnvFrom {
		h.addJSON(&c.EnvFrom[i])
	}
}

func (h *hashed) addAll(texts []string) {
	h.addLength(len(texts))
	for _, text := range texts {
		h.add(text)
	}
}

func (h *hashed) add(text string) {
	if h.pod != "" && isPodName(text, h.pod) {
		text = podNameToken
	}
	h.addLength(len(text))
	h.all = append(h.all, text...)
}

func (h *hashed) addLength(n int) {
	h.all = binary.LittleEndian.AppendUint64(h.all, uint64(n)) //nolint:gosec // a length
}

func (h *hashed) addJSON(value any) {
	data, _ := json.Marshal(value) // API types always encode
	h.all = append(h.all, data...)
}

// OffersIn returns the sizes that a MemoryRecommendation has for new pods, by container.
func OffersIn(containers []v1alpha1.ContainerRecommendation) map[string]Offer {
	out := make(map[string]Offer, len(containers))
	for i := range containers {
		if c := &containers[i]; c.NewPods != nil || len(c.OtherPrograms) > 0 {
			out[c.Container] = offerOf(c, c.NewPods)
		}
	}
	return out
}

// CanariesIn returns the sizes for a canary, the first new pod with a lower limit, by container.
func CanariesIn(containers []v1alpha1.ContainerRecommendation) map[string]Offer {
	out := OffersIn(containers)
	for i := range containers {
		if c := &containers[i]; c.NewPods != nil && c.Recommended != nil {
			out[c.Container] = offerOf(c, c.Recommended)
		}
	}
	return out
}

// offerOf returns an offer of size; with a nil size, only for other programs.
func offerOf(c *v1alpha1.ContainerRecommendation, size *v1alpha1.Size) Offer {
	o := Offer{Program: c.Program, Owner: sizeOf(c.Owner), Size: sizeOf(size)}
	if size != nil {
		o.Recommended = sizeOf(c.Recommended)
	}
	for i := range c.OtherPrograms {
		other := &c.OtherPrograms[i]
		o.Others = append(o.Others, Offer{
			Program: other.Program, Owner: sizeOf(other.Owner), Size: profile.SizeOf(other.NewPods),
		})
	}
	return o
}

// sizeOf returns a size; zero for nil.
func sizeOf(size *v1alpha1.Size) memory.Size {
	if size == nil {
		return memory.Size{}
	}
	return profile.SizeOf(*size)
}
