// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// subject is a file or an image that was built.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// images collects NAME=sha256:DIGEST.
type images []subject

func (i *images) String() string { return fmt.Sprint(*i) }

func (i *images) Set(text string) error {
	name, digest, found := strings.Cut(text, "=sha256:")
	if _, err := hex.DecodeString(digest); !found || err != nil || len(digest) != 2*sha256.Size {
		return fmt.Errorf("%q is no NAME=sha256:DIGEST", text)
	}
	*i = append(*i, subject{Name: name, Digest: map[string]string{"sha256": digest}})
	return nil
}

// provenance writes an in-toto statement (SLSA provenance 1): the files of a folder and the images, from which commit
// and with which Go. It says who built them only when told to; whoever signs it vouches for that.
func provenance(args []string) error {
	flags := flag.NewFlagSet("provenance", flag.ContinueOnError)
	version := flags.String("version", "", "version of memfit")
	commit := flags.String("commit", "", "commit that was built")
	toolchain := flags.String("go", "", "what go env GOVERSION says")
	builder := flags.String("builder", "https://github.com/memfit/memfit/tree/main/hack/release.sh", "who built it")
	dir := flags.String("dir", "", "folder with the files of the release")
	var built images
	flags.Var(&built, "image", "NAME=sha256:DIGEST; may be repeated")
	out := flags.String("o", "provenance.intoto.json", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || *commit == "" || *toolchain == "" {
		return errors.New("-version, -commit and -go say what was built from what: name all three")
	}
	files, err := digests(*dir)
	if err != nil {
		return err
	}
	const source = "git+https://github.com/memfit/memfit"
	statement, err := json.MarshalIndent(map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       append(files, built...),
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          "https://github.com/memfit/memfit/blob/main/hack/release.sh",
				"externalParameters": map[string]any{"version": *version},
				"resolvedDependencies": []any{
					map[string]any{"uri": source, "digest": map[string]string{"gitCommit": *commit}},
					map[string]any{"uri": "pkg:golang/toolchain@" + strings.TrimPrefix(*toolchain, "go")},
				},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": *builder}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	return write(*out, append(statement, '\n'))
}

// digests are the files of a folder and of those below it, in the order of their names. Layouts of images are left out:
// an image is known by its own digest.
func digests(dir string) ([]subject, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var found []subject
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if _, err := root.Stat(path.Join(name, "oci-layout")); err == nil {
				return fs.SkipDir
			}
			return nil
		}
		content, err := root.ReadFile(name)
		sum := sha256.Sum256(content)
		found = append(found, subject{
			Name: name, Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])},
		})
		return err
	})
	return found, err
}

// predicate prints what a statement says about its subjects: cosign names them itself.
func predicate(args []string) error {
	if len(args) != 1 {
		return errors.New("name one statement")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var statement struct{ Predicate json.RawMessage }
	if err := json.Unmarshal(text, &statement); err != nil {
		return fmt.Errorf("reading %s: %w", args[0], err)
	}
	if statement.Predicate == nil {
		return errors.New(args[0] + " is no in-toto statement: it has no predicate")
	}
	_, err = fmt.Println(string(statement.Predicate))
	return err
}
