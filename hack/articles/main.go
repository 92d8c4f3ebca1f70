// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// stories in the order of the page.
func stories() []Story { return []Story{goStory(), nodeStory(), jvmStory(), rubyStory(), udpStory()} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	name := flag.String("story", "", "repeat only these articles, separated by commas")
	docs := flag.String("docs", "../../docs/evidence", "folder for articles.md and articles/*.svg")
	output := flag.String("output", "../../dist/articles", "folder for the output of memfit's commands, ARTICLE.txt")
	node := flag.String("node", "", "run the programs on this node of the lab (cgroup2) and write articles-NODE.md")
	flag.Parse()
	p, err := runAll(ctx, page{Machine: machine(ctx), Node: *node}, *name, *docs, *output)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	wrong := 0
	for _, r := range p.Stories {
		for _, what := range r.Wrong() {
			fmt.Printf("DIFFERS %s: %s\n", r.Name, what)
			wrong++
		}
	}
	if err != nil || wrong > 0 {
		os.Exit(1)
	}
	fmt.Printf("All agree (%s)\n", p.Took)
}

// runAll repeats the articles, or those with the given names, and writes the page and the output. With names, the page
// is written to output instead of docs.
func runAll(ctx context.Context, p page, name, docs, output string) (page, error) {
	started := time.Now()
	pictures, markdown, text := filepath.Join(docs, "articles"), "articles.md", markdownText
	if p.Node != "" { // the pictures are those of the default node
		output += "-" + p.Node
		pictures, markdown, text = output, "articles-"+p.Node+".md", nodeText
	}
	if name != "" {
		pictures, docs = output, output
	}
	if err := errors.Join(os.MkdirAll(pictures, 0o755), os.MkdirAll(output, 0o755)); err != nil {
		return p, err
	}
	wanted := slices.DeleteFunc(stories(), func(s Story) bool {
		return name != "" && !slices.Contains(strings.Split(name, ","), s.Name)
	})
	if len(wanted) == 0 {
		return p, fmt.Errorf("no article is called %q: -story takes go, node, jvm, ruby and udp", name)
	}
	var err error
	for _, s := range wanted {
		if ctx.Err() != nil {
			return p, ctx.Err()
		}
		r, failed := runOne(ctx, s, p.Node, pictures)
		p.Stories = append(p.Stories, r)
		err = errors.Join(err, failed, write(filepath.Join(output, r.Name+".txt"), outputText, r))
	}
	p.Took = time.Since(started).Round(time.Second)
	return p, errors.Join(err, write(filepath.Join(docs, markdown), text, p))
}

// runOne repeats an article, and prints its results without readings and command output.
func runOne(ctx context.Context, s Story, node, pictures string) (*Report, error) {
	run, failed := runStory(ctx, "kubectl", node, "programs", s, os.Stdout)
	r, err := report(run, failed, pictures)
	short := *r
	short.Readings, short.Commands = nil, nil
	return r, errors.Join(err, writeTemplate(os.Stdout, outputText, &short))
}

func write(path, text string, data any) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(writeTemplate(f, text, data), f.Close())
}

// machine returns the date, kernel, cores and memfit's version.
func machine(ctx context.Context) string {
	kernel, _ := exec.CommandContext(ctx, "uname", "-sr").Output()
	version, _ := exec.CommandContext(ctx, "git", "describe", "--tags", "--always").Output()
	return fmt.Sprintf("%s, %s, %d cores, memfit %s", time.Now().UTC().Format(time.DateOnly),
		strings.TrimSpace(string(kernel)), runtime.NumCPU(), strings.TrimSpace(string(version)))
}
