// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage reads the current memory use of containers. [Source] is the interface, which the subpackages implement,
// and [Collector] reads all nodes for controllers/usage.
//
// Unknown usage is never reported as zero. A node that does not respond is a [memory.Silence] with its error, and a
// field that a source does not report has a flag that is false. The package opens no connection and reads no clock:
// [Collector] has fields for both.
package usage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
)

// Node is the address of one Kubernetes node.
type Node struct {
	Name    string
	Address string // InternalIP, or another name or address of the kubelet; IPv6 without brackets
	Port    int32  // status.daemonEndpoints.kubeletEndpoint.Port; 0 means 10250
	Swaps   bool   // the node has swap space (status.nodeInfo.swap)
	Missing error  // why the address is unknown; nil: known
}

// Reading is one source's data about the containers of one node at one time.
type Reading struct {
	// Samples has one entry per running container with known memory. The memory of a missing container is unknown, not 0.
	Samples []memory.Sample
	// Counters are the kernel's counts of kills in running containers, which no pod status shows.
	Counters []memory.KillCounter
	// Source is the Name of the source that responded.
	Source string
}

// Source is one source of usage.
type Source interface {
	// Read returns the usage on node. It is safe for concurrent use, and its error says what to do next.
	Read(ctx context.Context, node Node) (Reading, error)
	// Name is one lower-case word for logs, metrics and status: "kubelet", "prometheus", "metrics-api".
	Name() string
}

// Cause returns the cause of a failed request, without the method and URL that net/http adds. If the response was too
// long for an [http.MaxBytesReader], the error names the maximum.
func Cause(err error) error {
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("the response exceeds %s, the maximum that memfit reads", memory.Bytes(long.Limit))
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

// Is reports whether err is, or wraps, an error of type E.
func Is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// TimedOut reports whether a request took too long.
func TimedOut(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// FirstLine returns the first line of a server's text, made printable, at most 300 bytes.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return quote.Plain(quote.Cut(line, 300))
}

// ParseCgroup parses a container's cgroup path: the label id of cAdvisor's series, their only label with the pod's UID.
// Both results are empty if id is not the path of a pod's container, for example that of a nested cgroup.
func ParseCgroup(id string) (podUID, containerID string) {
	podUID, ok := cgroup.PodUID(path.Base(path.Dir(id)))
	if !ok {
		return "", ""
	}
	containerID = path.Base(id)
	if scope, ok := strings.CutSuffix(containerID, ".scope"); ok {
		containerID = scope[strings.LastIndexByte(scope, '-')+1:]
	}
	return podUID, containerID
}

// MaxBehind and MaxAhead bound a sample's time, relative to memfit's clock. A kubelet measures every 10 to 15 s,
// metrics-server every minute, and Prometheus returns values up to 5 minutes old. Other times are wrong or forged: a
// sample from 40 days ahead would displace the history.
const (
	MaxBehind = 10 * time.Minute
	MaxAhead  = 2 * time.Minute
)

// ClockError is the error for a node whose samples all have implausible times. Ahead is negative if they are behind.
type ClockError struct{ Ahead time.Duration }

func (e ClockError) Error() string {
	how := "behind"
	if e.Ahead > 0 {
		how = "ahead"
	}
	return fmt.Sprintf("its samples are %s %s of memfit's clock, so all are ignored (at most %s behind and %s ahead): "+
		"compare the clocks of the node and of memfit's node",
		format.InWords(e.Ahead.Abs()), how, format.InWords(MaxBehind), format.InWords(MaxAhead))
}

// plausible removes samples with implausible times, and start times after their sample. No sample left is an error.
func plausible(r Reading, now time.Time) (Reading, error) {
	had := len(r.Samples)
	var off time.Duration
	r.Samples = slices.DeleteFunc(r.Samples, func(s memory.Sample) bool {
		ahead := s.Time.Sub(now)
		if ahead <= MaxAhead && ahead >= -MaxBehind {
			return false
		}
		off = ahead
		return true
	})
	if had > 0 && len(r.Samples) == 0 {
		return Reading{}, ClockError{off}
	}
	for i := range r.Samples {
		if s := &r.Samples[i]; s.Started.After(s.Time) {
			s.Started = time.Time{}
		}
	}
	return r, nil
}
