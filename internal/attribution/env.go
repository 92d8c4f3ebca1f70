// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

// Variables are the environment variables that readers may read. Every other one, which may be a secret, is skipped
// where the environment is read.
var Variables = []string{
	"GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_",
	"LD_PRELOAD",
	"PYTHONMALLOC", "GOGC", "GOMEMLIMIT", "GODEBUG", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS",
}
