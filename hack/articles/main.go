// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// stories in the order of the page.
func stories() []Story { return []Story{goStory(), nodeStory(), jvmStory(), rubyStory(), udpStory()} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	name := flag.String("story", "", "tell these alone, separated by commas")
	docs := flag.String("docs", "../../docs/evidence", "folder for articles.md and articles/*.svg")
	html := flag.String("html", "../../dist/articles.html", "file for the HTML report")
	times := flag.Int("runs", 1, "tell each story so many times in a row; each of them has to come out")
	at := flag.Int("at", 1, "tell so many stories at a time: less waiting, more that happens beside")
	here := flag.Bool("bare", false, "run the programs on this machine, in memory cgroups, without a cluster")
	node := flag.String("node", "", "tell them on this node of the lab (cgroup2), and write articles-NODE.md")
	began := flag.Int64("began", time.Now().Unix(), "when the command began that calls this one, in seconds of the epoch")
	flag.Parse()
	how := func(ctx context.Context, s Story) (*Run, error) {
		return tell(ctx, "kubectl", *node, "programs", s, os.Stdout)
	}
	if *here {
		how = func(ctx context.Context, s Story) (*Run, error) { return tellBare(ctx, s, os.Stdout) }
	}
	p := page{Machine: machine(ctx), Node: *node, Bare: *here, Times: *times, At: *at, began: time.Unix(*began, 0)}
	ok, err := tellAll(ctx, p, *name, *docs, *html, how)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// tellAll tells the stories, or those of that name, and writes the reports. It reports whether all came out, each
// time.
func tellAll(
	ctx context.Context, p page, name, docs, html string, how func(context.Context, Story) (*Run, error),
) (bool, error) {
	pictures, markdown, text := filepath.Join(docs, "articles"), filepath.Join(docs, "articles.md"), markdownText
	if p.Node != "" { // the pictures are those of the lab's own node
		pictures, markdown, text = filepath.Dir(html), filepath.Join(docs, "articles-"+p.Node+".md"), nodeText
	}
	if err := errors.Join(os.MkdirAll(pictures, 0o755), os.MkdirAll(filepath.Dir(html), 0o755)); err != nil {
		return false, err
	}
	wanted := slices.DeleteFunc(stories(), func(s Story) bool {
		return name != "" && !slices.Contains(strings.Split(name, ","), s.Name)
	})
	if len(wanted) == 0 {
		return false, fmt.Errorf("there is no story %q", name)
	}
	p.Setup = time.Since(p.began).Round(time.Second)
	reports, errs := make([]*Report, len(wanted)), make([]error, len(wanted))
	var group sync.WaitGroup
	turns := make(chan struct{}, max(p.At, 1))
	for i, s := range wanted {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			reports[i], errs[i] = tellOne(ctx, s, p.Times, pictures, how)
		})
	}
	group.Wait()
	ok := true
	for _, r := range reports {
		if r == nil { // not begun before all was ended
			ok = false
			continue
		}
		p.Stories, ok = append(p.Stories, r), ok && r.OK()
	}
	p.Took = time.Since(p.began).Round(time.Second)
	fmt.Printf("In all %s, of which %s before the first story; each run: %v\n", p.Took, p.Setup, p.Runs())
	return ok, errors.Join(errors.Join(errs...),
		write(markdown, func(w io.Writer) error { return writeMarkdown(w, text, p) }),
		write(html, func(w io.Writer) error { return writeHTML(w, p) }),
	)
}

// tellOne tells a story so many times in a row.
func tellOne(
	ctx context.Context, s Story, times int, pictures string, how func(context.Context, Story) (*Run, error),
) (r *Report, err error) {
	for range times {
		if err := ctx.Err(); err != nil {
			return r, err // fewer runs than were asked for
		}
		run, failed := how(ctx, s)
		next, err := report(run, failed, pictures)
		if err != nil {
			return r, err
		}
		summarize(os.Stdout, next)
		r = next.after(r)
	}
	return r, nil
}

func write(path string, how func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(how(f), f.Close())
}

// summarize says on a terminal what came of a story.
func summarize(w io.Writer, r *Report) {
	fmt.Fprintf(w, "\n%s (%s): came out: %t, in %v\n", r.Title, r.Name, r.OK(), r.Took)
	if r.Err != "" {
		fmt.Fprintf(w, "  it did not happen: %s\n", r.Err)
	}
	for _, row := range r.Table {
		fmt.Fprintf(w, "  %s\n", strings.Join(row, "  |  "))
	}
	for _, o := range r.Outcomes {
		state := "agrees"
		switch {
		case o.Err != nil:
			state = "NOT MEASURED: " + o.Err.Error()
		case !o.OK:
			state = "DIFFERS"
		}
		fmt.Fprintf(w, "  %-9s %s: %.2f, expected %.2f ± %.2f (%s; article: %s)\n", state, o.What, o.Value, o.Want,
			o.Within, o.From, o.Article)
	}
	fmt.Fprintf(w, "  Facts that the author needed and memfit reports: %s\n", r.Verdict)
	for _, a := range r.Answers {
		line := a.Line
		if a.Same {
			line = "(the same line)"
		}
		fmt.Fprintf(w, "    %s: %s\n", a.What, line)
	}
	fmt.Fprintln(w)
}

// machine is where and when it was measured.
func machine(ctx context.Context) string {
	kernel, _ := exec.CommandContext(ctx, "uname", "-sr").Output()
	version, _ := exec.CommandContext(ctx, "git", "describe", "--tags", "--always").Output()
	return fmt.Sprintf("%s, %s, %d cores, memfit %s", time.Now().UTC().Format(time.DateOnly),
		strings.TrimSpace(string(kernel)), runtime.NumCPU(), strings.TrimSpace(string(version)))
}
