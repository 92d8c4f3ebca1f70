// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

// Kind is the content of a region. Its first part groups kinds for users: "jvm", "glibc", "file".
type Kind string

// Kinds from the rules of this package, and from readers.
const (
	Kernel      Kind = "kernel"       // pages that the kernel maps into every process
	Named       Kind = "named"        // anonymous memory with an unknown name
	MainStack   Kind = "stack.main"   // the stack of the first thread
	ThreadStack Kind = "stack.thread" // stacks of the others
	Shmem       Kind = "shmem"        // shared memory and tmpfs
	HugeTLB     Kind = "hugetlb"      // reserved huge pages, which no RSS counts
	Text        Kind = "file.text"    // code of files
	ReadOnly    Kind = "file.ro"      // read-only mappings of files
	Data        Kind = "file.data"    // writable mappings of files
	BSS         Kind = "file.bss"     // zeroed variables behind a file
	JIT         Kind = "jit"          // anonymous code
	BrkHeap     Kind = "brk.heap"     // the [heap] of an unknown allocator
	Arena       Kind = "glibc.arena"  // heaps of glibc's non-main arenas
	GlibcBrk    Kind = "glibc.brk"    // the main arena, where it grows by brk
	GlibcMmap   Kind = "glibc.mmap"   // large blocks of glibc, each mapped on its own
	JVMHeap     Kind = "jvm.heap"
	JVMCode     Kind = "jvm.codecache"
	JVMCDS      Kind = "jvm.cds"        // archived classes
	JVMClass    Kind = "jvm.classspace" // compressed class space
	JVMOther    Kind = "jvm.other"      // metaspace and side tables of the collector
	V8Page      Kind = "v8.page"
	V8Code      Kind = "v8.coderange"
	GoHeap      Kind = "go.heap"
	GoMeta      Kind = "go.meta"
	PyArena     Kind = "py.arena"
	RubyPage    Kind = "ruby.page"
	Jemalloc    Kind = "jemalloc"
	Mimalloc    Kind = "mimalloc"
	Tcmalloc    Kind = "tcmalloc"
	Other       Kind = "anon.other" // unrecognized
)
