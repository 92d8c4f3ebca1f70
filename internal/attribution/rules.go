// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// Kind names the content of a region in user-facing output.
type Kind string

// Kinds from the rules of this package, and from readers.
const (
	Kernel    Kind = "kernel" // pages that the kernel maps into every process
	Named     Kind = "named memory"
	Stack     Kind = "thread stacks"
	Shmem     Kind = "shared memory"
	HugeTLB   Kind = "huge pages" // of hugetlbfs, which RSS does not include
	Files     Kind = "program and libraries"
	Variables Kind = "variables" // writable mappings of files, and zeroed memory after them
	JIT       Kind = "compiled code"
	BrkHeap   Kind = "heap of an unknown allocator" // the mapping [heap]
	Arena     Kind = "glibc arenas"
	GlibcMmap Kind = "glibc large blocks" // each has its own mapping
	JVMHeap   Kind = "Java heap"
	JVMCode   Kind = "JVM code cache"
	JVMCDS    Kind = "JVM class archive"
	JVMClass  Kind = "JVM class space"
	JVMOther  Kind = "JVM metaspace and tables"
	V8Page    Kind = "V8 heap"
	V8Code    Kind = "V8 code"
	GoHeap    Kind = "Go heap"
	GoMeta    Kind = "Go runtime"
	PyArena   Kind = "Python objects"
	RubyPage  Kind = "Ruby heap"
	Jemalloc  Kind = "jemalloc"
	Mimalloc  Kind = "mimalloc"
	Tcmalloc  Kind = "tcmalloc"
	Other     Kind = "unexplained"
)

// rules classifies memory that no reader claimed, by its mapping.
type rules struct {
	s       *Snapshot
	threads []uint64 // addresses of thread descriptors, sorted
	jvm     bool
	golang  bool
	library Kind // allocator that is a shared library; "" if none
}

// libraries lists allocators that are shared libraries. Statically linked allocators are not recognized.
var libraries = []struct {
	prefix string
	kind   Kind
}{{"libjemalloc", Jemalloc}, {"libmimalloc", Mimalloc}, {"libtcmalloc", Tcmalloc}}

// rulesFor returns the rules for a process. found has the results of its readers.
func rulesFor(s *Snapshot, found []amounts.Usage) *rules {
	r := &rules{s: s, jvm: s.HasFile("libjvm.so")}
	r.threads = slices.Sorted(slices.Values(s.Process.RobustLists))
	for _, l := range libraries {
		if r.library == "" && s.HasFile(l.prefix) {
			r.library = l.kind
		}
	}
	r.golang = slices.ContainsFunc(s.Mappings, func(m procmem.Mapping) bool {
		return strings.HasPrefix(m.Path, "[anon: Go:")
	})
	if !s.HasFile("libc.") && !s.HasFile("ld-") { // a Go program without a C library has no other allocator
		r.golang = r.golang || slices.ContainsFunc(found, func(u amounts.Usage) bool { return u.Reader == amounts.Go })
	}
	return r
}

// classify returns the kind of a mapping by the first matching rule.
func (r *rules) classify(i int) Region {
	m := &r.s.Mappings[i]
	for _, rule := range []func(int, *procmem.Mapping) Kind{
		kernelOwned, named, sharedMemory, hugePages, fileBacked, r.bss, r.stack, heap, r.code, r.byRuntime,
	} {
		if kind := rule(i, m); kind != "" {
			return Region{Kind: kind}
		}
	}
	return Region{Kind: Other}
}

func kernelOwned(_ int, m *procmem.Mapping) Kind {
	switch {
	case m.Kernel():
		return Kernel
	case m.Path == "[stack]":
		return Stack
	}
	return ""
}

// anonymousNames maps the names that runtimes give their anonymous memory (kernels with CONFIG_ANON_VMA_NAME) to kinds.
// The first matching prefix counts. Other names are not reported, because the process controls them.
var anonymousNames = []struct {
	prefix string
	kind   Kind
}{
	{"Go: heap]", GoHeap}, // "Go: heap reservation" and others are not heap in use
	{"Go:", GoMeta},
	{"glibc: malloc arena", Arena},
	{"glibc: malloc", GlibcMmap},
	{"glibc: pthread stack", Stack},
	{"glibc: loader malloc", GlibcMmap},
	{"", Named},
}

func named(_ int, m *procmem.Mapping) Kind {
	name, ok := strings.CutPrefix(m.Path, "[anon:")
	if !ok {
		return ""
	}
	name = strings.TrimPrefix(name, " ")
	for _, n := range anonymousNames {
		if strings.HasPrefix(name, n.prefix) {
			return n.kind
		}
	}
	return ""
}

// sharedMemory recognizes what the kernel counts as shmem of the container. No allocator returns this memory.
func sharedMemory(_ int, m *procmem.Mapping) Kind {
	if !m.Has(procmem.Shared) {
		return ""
	}
	if strings.HasPrefix(m.Path, "[anon_shmem:") {
		return Shmem
	}
	for _, prefix := range []string{"/dev/zero", "/SYSV", "/memfd:", "/dev/shm/"} {
		if strings.HasPrefix(m.Path, prefix) {
			return Shmem
		}
	}
	return ""
}

func hugePages(_ int, m *procmem.Mapping) Kind {
	if strings.HasPrefix(m.Path, "/anon_hugepage") || m.HugeTLB > 0 {
		return HugeTLB
	}
	return ""
}

func fileBacked(_ int, m *procmem.Mapping) Kind {
	switch {
	case m.Inode == 0:
		return ""
	case path.Ext(m.Path) == ".jsa":
		return JVMCDS
	case m.Has(procmem.Writable) && !m.Has(procmem.Executable):
		return Variables
	}
	return Files
}

// maxBSS bounds an anonymous mapping that counts as the zeroed variables (.bss) of the file mapped before it.
const maxBSS = 16 * memory.MiB

func (r *rules) bss(i int, m *procmem.Mapping) Kind {
	if i == 0 || m.Path != "" || !m.Has(procmem.Writable) || m.Has(procmem.Shared) {
		return ""
	}
	before := &r.s.Mappings[i-1]
	if before.Inode == 0 || before.End != m.Start || memory.FromUint64(m.Size()) >= maxBSS {
		return ""
	}
	return Variables
}

// stack recognizes thread stacks by the thread descriptor at their top. One mapping may hold several adjacent stacks:
// glibc 2.42 and newer has guard pages that are not mappings.
func (r *rules) stack(_ int, m *procmem.Mapping) Kind {
	i, _ := slices.BinarySearchFunc(r.threads, m.Start, cmp.Compare)
	if i == len(r.threads) || r.threads[i] >= m.End || !m.Has(procmem.Writable) {
		return ""
	}
	return Stack
}

func heap(_ int, m *procmem.Mapping) Kind {
	if m.Path == "[heap]" {
		return BrkHeap
	}
	return ""
}

func (r *rules) code(_ int, m *procmem.Mapping) Kind {
	if m.Has(procmem.Executable) && !r.jvm {
		return JIT
	}
	return ""
}

// byRuntime returns the kind of otherwise unrecognized memory by the runtime or allocator of the process.
func (r *rules) byRuntime(_ int, m *procmem.Mapping) Kind {
	switch {
	case r.jvm:
		return JVMOther
	case r.golang:
		return GoMeta
	case r.library != "" && m.Has(procmem.Writable):
		return r.library
	}
	return ""
}
