// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"regexp"

	"github.com/memfit/memfit/internal/attribution/amounts"
)

// cpythonVersions has Py_Version, which exists since 3.11. In older ones, a constant and the file name must agree.
var cpythonVersions = []VersionAt{
	{Hex: "Py_Version"},
	{Text: regexp.MustCompile(`(3\.\d{1,2}\.\d{1,2})\+?\x00`)},
	{Path: regexp.MustCompile(`python(3\.\d{1,2})`)},
}

// Python has no heap cap. Its only memory variable, PYTHONMALLOC, is not set: an unknown value is a fatal error.
var _ = row(&Runtime{
	Name: "Python", Title: "Python", Order: 5,
	Images:   []Image{{Name: "python", Tagged: true}, {Name: "pypy"}},
	Commands: []string{"python", "python*", "gunicorn", "uvicorn", "celery", "uwsgi", "ipython*"},
	Marks: []Mark{ // checked with CPython 3.9 to 3.13 from pyenv and Debian
		{Program: true, Symbol: "Py_GetVersion", Versions: cpythonVersions},
		{File: "libpython3*.so*", Versions: cpythonVersions},
	},
	Knobs: glibc(0, "", "MALLOC_ARENA_MAX is not set by default: with 16 long-lived threads arenaMax: 2 reduced 1137 to "+
		"about 700 MB, with short-lived threads it raised 50 to over 600 MB. Try it on one replica first"),
	HeapReader: amounts.CPython,
	Levers: append([]Lever{{
		Action: "a fresh worker process", How: "gunicorn --max-requests, celery --max-tasks-per-child",
		Reader: amounts.CPython, Gain: freshProcess,
	}}, glibcLevers("ctypes.CDLL(None).malloc_trim(0) after a burst")...),
	Advisories: []Advisory{
		{Since: V(3, 14), Before: V(3, 14, 5),
			Text: "CPython 3.14.0 to 3.14.4 collect incrementally and were reported to take up to five times the memory: " +
				"upgrade to 3.14.5", Source: "python/cpython#148726"},
	},
	Advice: "Python has no heap cap: where workers grow, let the server replace them (gunicorn --max-requests, celery " +
		"--max-tasks-per-child)",
})
