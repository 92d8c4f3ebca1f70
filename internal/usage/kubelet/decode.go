// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// mostContainers is how many containers one node may have: ten times what 110 pods of 4 have, and four for each of
// 1,000.
const mostContainers = 4096

var errTooMany = fmt.Errorf("it has more than %d containers, the most memfit reads of a node", mostContainers)

// errNoPods is what an answer without a list of pods means: it is not a summary, whatever it is.
var errNoPods = errors.New("there is no list of pods in it: this is not a summary")

// DecodeSummary reads a /stats/summary and hands over one sample per container whose memory the kubelet knows.
// Containers without figures, without a time or with nothing but zeros (their cgroup is already gone) are left out.
// What was handed over before an error must be dropped by the caller: an incomplete answer proves nothing about the
// containers it does not reach.
func DecodeSummary(r io.Reader, take func(memory.Sample)) error {
	tokens := decoders.Get().(*jsontext.Decoder) //nolint:forcetypeassert // nothing else is in there
	tokens.Reset(&bounded{Reader: r, tokens: tokens}, sameNameTwice, anyBytes)
	defer func() {
		tokens.Reset(http.NoBody) // so that nothing keeps the answer
		decoders.Put(tokens)
	}()
	d := summary{scanner: scanner{tokens: tokens}, take: take}
	if err := d.summary(); err != nil {
		return fmt.Errorf("reading the summary: %w", err)
	}
	return nil
}

// summary is one decoding. The types follow k8s.io/kubelet/pkg/apis/stats/v1alpha1.
type summary struct {
	scanner
	take func(memory.Sample)

	ref memory.ContainerRef // of the pod being read
	// containers are those of the pod being read: its name may come after them. read counts those of all pods.
	containers []memory.Sample
	read       int
	at         memory.Sample // the container being read
	swap       swapTold      // of what is being read, a container or its pod
	podSwap    memory.Bytes
	untold     []int // indices of containers whose swap the kubelet may not know
}

// swapTold is a swap member. Zeros and both absent are not the same.
type swapTold struct {
	used, available       memory.Bytes
	hasUsed, hasAvailable bool
}

// untold: it reports that no swap is in use, and none available. A kubelet reports that of a container that may not
// swap, and of one that cAdvisor does not know: then it asks the container runtime, and containerd reports no swap.
func (s swapTold) untold() bool {
	return s.hasUsed && s.hasAvailable && s.used == 0 && s.available == 0
}

// sandboxSwap is more than what a pod's own process, pause, can have swapped out: it is some 300 KiB.
const sandboxSwap = memory.MiB

func (d *summary) summary() error {
	switch d.tokens.PeekKind() {
	case jsontext.KindBeginObject:
	case jsontext.KindInvalid:
		return d.noJSON()
	default:
		return errNoPods
	}
	found := false
	err := d.object(func(key []byte) error {
		if string(key) != "pods" {
			return d.skip()
		}
		found = true
		return d.array(d.pod)
	})
	if err == nil && !found {
		return errNoPods
	}
	return err
}

// noJSON is why an answer does not even begin as JSON.
func (d *summary) noJSON() error {
	_, err := d.tokens.ReadToken()
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case errors.As(err, &syntax):
		return errNoPods // a page, for example
	}
	return err
}

func (d *summary) pod() error {
	d.ref, d.containers, d.podSwap, d.untold = memory.ContainerRef{}, d.containers[:0], 0, d.untold[:0]
	if err := d.object(d.podMember); err != nil {
		return err
	}
	if d.ref.Pod == "" || d.ref.Namespace == "" {
		return nil
	}
	d.tellSwap()
	for _, c := range d.containers {
		c.Container.Namespace, c.Container.Pod, c.Container.UID = d.ref.Namespace, d.ref.Pod, d.ref.UID
		d.take(c)
	}
	return nil
}

// tellSwap gives what the pod has swapped out beyond what is reported of its containers to the one without a report.
// Of several, it is unknown whose it is.
func (d *summary) tellSwap() {
	rest := d.podSwap
	for i := range d.containers {
		rest = rest.Minus(d.containers[i].Swap)
	}
	if len(d.untold) == 1 && rest >= sandboxSwap {
		d.containers[d.untold[0]].Swap = rest
	}
}

func (d *summary) podMember(key []byte) (err error) {
	switch string(key) {
	case "podRef":
		err = d.object(d.refMember)
	case "swap":
		d.swap = swapTold{}
		err = d.object(d.swapMember)
		d.podSwap = d.swap.used
	case "containers":
		err = d.array(d.container)
	default:
		err = d.skip()
	}
	return err
}

func (d *summary) refMember(key []byte) error {
	into := ""
	switch string(key) {
	case "name", "namespace", "uid":
		into = string(key)
	default:
		return d.skip()
	}
	text, err := d.str()
	switch into {
	case "name":
		d.ref.Pod = string(text)
	case "namespace":
		d.ref.Namespace = string(text)
	case "uid":
		d.ref.UID = types.UID(text)
	}
	return err
}

func (d *summary) container() error {
	if d.read++; d.read > mostContainers {
		return errTooMany
	}
	d.at, d.swap = memory.Sample{}, swapTold{}
	if err := d.object(d.containerMember); err != nil {
		return err
	}
	d.at.Swap = d.swap.used
	if s := d.at; s.Container.Container != "" && !s.Time.IsZero() && (s.RSS > 0 || s.WorkingSet > 0) {
		if d.swap.untold() {
			d.untold = append(d.untold, len(d.containers))
		}
		d.containers = append(d.containers, s)
	}
	return nil
}

func (d *summary) containerMember(key []byte) (err error) {
	switch string(key) {
	case "name":
		var text []byte
		text, err = d.str()
		d.at.Container.Container = string(text)
	case "startTime":
		d.at.Started, err = d.time()
	case "memory":
		err = d.object(d.memoryMember)
	case "swap":
		err = d.object(d.swapMember)
	default:
		err = d.skip()
	}
	return err
}

func (d *summary) memoryMember(key []byte) (err error) {
	var n int64
	switch string(key) {
	case "time":
		d.at.Time, err = d.time()
	case "rssBytes":
		n, d.at.HasRSS, err = d.count()
		d.at.RSS = memory.Bytes(n)
	case "workingSetBytes":
		n, _, err = d.count()
		d.at.WorkingSet = memory.Bytes(n)
	case "usageBytes":
		n, _, err = d.count()
		d.at.Usage = memory.Bytes(n)
	case "majorPageFaults":
		d.at.MajorFaults, d.at.HasMajorFaults, err = d.count()
	case "psi":
		err = d.object(d.pressureMember)
	default:
		err = d.skip()
	}
	return err
}

// swapMember reads what is swapped out; its time is not that of memory, and is passed over.
func (d *summary) swapMember(key []byte) error {
	var n int64
	var err error
	switch string(key) {
	case "swapUsageBytes":
		n, d.swap.hasUsed, err = d.count()
		d.swap.used = memory.Bytes(n)
	case "swapAvailableBytes":
		n, d.swap.hasAvailable, err = d.count()
		d.swap.available = memory.Bytes(n)
	default:
		err = d.skip()
	}
	return err
}

// mostMicroseconds fit a time.Duration.
const mostMicroseconds = math.MaxInt64 / int64(time.Microsecond)

// pressureMember reads psi.full: how long no task of the container could go on for want of memory, in all and as the
// kernel's average. The API calls the total nanoseconds. cAdvisor, from which a kubelet has it as a rule, hands on the
// kernel's microseconds; containerd, which it asks for what cAdvisor does not know, makes nanoseconds of them.
func (d *summary) pressureMember(key []byte) error {
	if string(key) != "full" {
		return d.skip()
	}
	return d.object(func(key []byte) error {
		var n int64
		var err error
		switch string(key) {
		case "total":
			n, _, err = d.count()
			d.at.Waited = time.Duration(min(n, mostMicroseconds)) * time.Microsecond
		case "avg300":
			d.at.WaitedPercent, err = d.percent()
		default:
			err = d.skip()
		}
		return err
	})
}

// time takes an RFC 3339 time; anything else is zero: unknown.
func (d *summary) time() (time.Time, error) {
	text, err := d.str()
	if err != nil {
		return time.Time{}, err
	}
	var t time.Time
	_ = t.UnmarshalText(text) // what is not a time leaves it zero
	return t, nil
}
