// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// pack writes the chart with the version of a release as a folder, OUT/chart, and as an archive,
// OUT/memfit-VERSION.tgz. Unlike with `helm package`, equal inputs give equal archives: without times and users, and in
// a fixed order.
func pack(args []string) error {
	flags := flag.NewFlagSet("package", flag.ContinueOnError)
	version := flags.String("version", "", "version of memfit, for example v0.1.0 or the output of git describe")
	out := flags.String("o", "dist", "folder to write into")
	if err := flags.Parse(args); err != nil {
		return err
	}
	number := semver(*version)
	files, err := stamped(number)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(*out, "chart")); err != nil {
		return err
	}
	names := make([]string, 0, len(files))
	for name, content := range files {
		names = append(names, name)
		if err := replace(filepath.Join(*out, "chart", name), content); err != nil {
			return err
		}
	}
	slices.SortFunc(names, func(a, b string) int { // Helm reads Chart.yaml first
		if (a == "Chart.yaml") != (b == "Chart.yaml") {
			return map[bool]int{true: -1, false: 1}[a == "Chart.yaml"]
		}
		return strings.Compare(a, b)
	})
	archive, err := archived(names, files)
	if err != nil {
		return err
	}
	fmt.Println(number)
	return replace(filepath.Join(*out, "memfit-"+number+".tgz"), archive)
}

var (
	release = regexp.MustCompile(`^v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?)$`)
	field   = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)
)

// semver returns a valid version for a chart. Versions that are not releases sort before all releases.
func semver(version string) string {
	if m := release.FindStringSubmatch(version); m != nil {
		return m[1]
	}
	clean := regexp.MustCompile(`[^0-9A-Za-z-]`).ReplaceAllString(version, "-")
	return "0.0.0-dev." + "x" + clean // the x allows leading zeros in clean
}

// stamped returns the files of the chart by path, with the version in Chart.yaml.
func stamped(number string) (map[string][]byte, error) {
	root, err := os.OpenRoot(chart)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files := map[string][]byte{}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := root.ReadFile(name)
		if name == "Chart.yaml" {
			text = field.ReplaceAll(text, []byte("${1}: "+number))
		}
		files[name] = text
		return err
	})
	return files, err
}

// archived returns a .tgz archive of the files in the order of names.
func archived(names []string, files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, name := range names {
		header := &tar.Header{
			Name: path.Join("memfit", name), Mode: 0o644, Size: int64(len(files[name])), ModTime: time.Unix(0, 0).UTC(),
			Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err := errors.Join(w.Close(), zipped.Close())
	return out.Bytes(), err
}
