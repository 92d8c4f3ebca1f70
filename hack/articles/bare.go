// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/readers"
	"github.com/memfit/memfit/internal/procmem/live"
)

// Bare runs a story without a cluster: each arm is a process of this machine in a memory cgroup (version 1) of its
// own. What memfit sets is what `kubectl memfit inject` plans for the story's manifests; what fills a process is read
// by memfit's own attribution, as its agent does it. Nothing is said by `kubectl memfit`, because there is no cluster
// to ask. It takes a fraction of the time, and reports whether a program has the shape of its article.
type bare struct {
	story Story
	work  string // folder
	say   io.Writer
	port  int
	run   *Run

	mu   sync.Mutex
	arms map[string]*process
}

type process struct {
	cmd    *exec.Cmd
	port   int
	cgroup string
	ended  chan struct{}
	err    error
}

const (
	cgroups   = "/sys/fs/cgroup/memory"
	firstPort = 28000
)

// tellBare tells a story on this machine.
func tellBare(ctx context.Context, s Story, say io.Writer) (*Run, error) {
	b := &bare{
		story: s, say: say, port: firstPort, arms: map[string]*process{},
		run: &Run{Story: s, Said: map[string]string{}, Began: time.Now(), Bare: true},
	}
	defer func() { b.run.Took = time.Since(b.run.Began) }()
	work, err := os.MkdirTemp("", "articles-")
	if err != nil {
		return b.run, err
	}
	b.work = work
	defer os.RemoveAll(work)
	defer b.end()
	settings, err := planned(ctx, s)
	if err != nil {
		return b.run, err
	}
	command, err := b.command(ctx)
	if err != nil {
		return b.run, err
	}
	// a fleet takes a scheduler, and another image a cluster
	s.Arms = slices.DeleteFunc(slices.Clone(s.Arms), func(a Arm) bool { return a.Replicas > 1 || a.Image != "" })
	b.story, b.run.Story = s, s
	for _, arm := range s.Arms {
		if err := b.start(ctx, arm, command, settings[arm.Name]); err != nil {
			return b.run, fmt.Errorf("starting %s: %w", arm.Name, err)
		}
	}
	for _, step := range append([]Step{{Name: "start", Path: "stats"}}, s.Steps...) {
		began := time.Now()
		if err := b.step(ctx, step); err != nil {
			return b.run, fmt.Errorf("%s: %w", step.Name, err)
		}
		fmt.Fprintf(say, "%s  %s, bare: %s took %s\n", time.Now().Format(time.TimeOnly), s.Name, step.Name,
			time.Since(began).Round(time.Second))
	}
	return b.run, nil
}

// planned are the variables that memfit's webhook would set, by arm.
func planned(ctx context.Context, s Story) (map[string][]string, error) {
	text, err := render(s, "")
	if err != nil {
		return nil, err
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "kubectl-memfit", "inject", "-f", "-", "-o", "json", "-q")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("kubectl memfit inject: %w: %s", err, errs.String())
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Env []struct{ Name, Value string }
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		return nil, fmt.Errorf("reading what kubectl memfit inject prints: %w", err)
	}
	all := map[string][]string{}
	for _, item := range list.Items {
		for _, c := range item.Spec.Template.Spec.Containers {
			for _, e := range c.Env {
				all[item.Metadata.Name] = append(all[item.Metadata.Name], e.Name+"="+e.Value)
			}
		}
	}
	return all, nil
}

// command is how the story's program is started here: folders of images become those of this machine.
func (b *bare) command(ctx context.Context) ([]string, error) {
	source, err := filepath.Abs(filepath.Join("programs", b.story.Program))
	if err != nil {
		return nil, err
	}
	if b.story.Command == nil {
		out := filepath.Join(b.work, b.story.Program)
		build := exec.CommandContext(ctx, "go", "build", "-o", out, "./programs/"+b.story.Program)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, text)
		}
		return []string{out}, nil
	}
	here := func(command []string) []string {
		command = slices.Clone(command)
		for i, word := range command {
			word = strings.ReplaceAll(word, "/app/"+b.story.Program, source)
			command[i] = strings.ReplaceAll(word, "/built", b.work)
		}
		return command
	}
	if build := here(b.story.Build); len(build) > 0 {
		if text, err := exec.CommandContext(ctx, build[0], build[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, text)
		}
	}
	return here(b.story.Command), nil
}

// start starts an arm in a cgroup of its own. Of several replicas there is one.
func (b *bare) start(ctx context.Context, arm Arm, command, settings []string) error {
	b.port++
	p := &process{
		port: b.port, ended: make(chan struct{}),
		cgroup: filepath.Join(cgroups, fmt.Sprintf("articles-%d-%s", os.Getpid(), arm.Name)),
	}
	if err := os.Mkdir(p.cgroup, 0o755); err != nil {
		return err
	}
	b.arms[arm.Name] = p
	if arm.LimitMi > 0 {
		limit := []byte(strconv.Itoa(arm.LimitMi << 20))
		if err := os.WriteFile(filepath.Join(p.cgroup, "memory.limit_in_bytes"), limit, 0o600); err != nil {
			return err
		}
	}
	join := `echo $$ > "$0/cgroup.procs"; exec "$@"`
	p.cmd = exec.CommandContext(ctx, "sh", append([]string{"-c", join, p.cgroup}, command...)...)
	p.cmd.Env = append(append(os.Environ(), "PORT="+strconv.Itoa(p.port)), settings...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return nil
}

// end ends what still runs.
func (b *bare) end() {
	for _, p := range b.arms {
		if p.cmd != nil && p.cmd.Process != nil {
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended by itself
			<-p.ended
		}
		for range 20 { // the kernel takes a moment to let go
			if os.Remove(p.cgroup) == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func (b *bare) step(ctx context.Context, step Step) error {
	ctx, cancel := context.WithTimeout(ctx, stepMost+step.Settle)
	defer cancel()
	errs := make([]error, len(b.story.Arms))
	var group sync.WaitGroup
	for i, arm := range b.story.Arms {
		if step.Arms == nil || slices.Contains(step.Arms, arm.Name) {
			group.Go(func() { errs[i] = b.one(ctx, step, arm) })
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

func (b *bare) one(ctx context.Context, step Step, arm Arm) error {
	p := b.arms[arm.Name]
	r := Reading{Arm: arm.Name, Step: step.Name}
	if _, dead := b.run.died(arm.Name); dead {
		return nil
	}
	if step.Predicted {
		before := Reading{Arm: arm.Name, Step: beforeStep(step.Name)}
		var err error
		if before.Look, err = p.look(ctx); err != nil {
			return fmt.Errorf("looking into %s before %s: %w", arm.Name, step.Name, err)
		}
		if before.Values, err = p.ask(ctx, "stats"); err != nil {
			return fmt.Errorf("%s: %w", arm.Name, err)
		}
		b.keep(before)
	}
	err := await(ctx, func() (bool, error) {
		var err error
		r.Values, err = p.ask(ctx, step.Path)
		select {
		case <-p.ended:
			return true, nil
		default:
			return err == nil, err
		}
	})
	if err == nil && r.Values != nil && step.Settle > 0 {
		time.Sleep(step.Settle)
		var after map[string]float64
		if after, err = p.ask(ctx, "stats"); err == nil {
			r.Values["rss"] = after["rss"]
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", arm.Name, err)
	case r.Values == nil && !arm.MayDie:
		return fmt.Errorf("%s ended: %w", arm.Name, p.err)
	case r.Values == nil:
		r.Dead = fmt.Sprintf("killed (%v)", p.err)
	case step.Inspect:
		if r.Look, err = p.look(ctx); err != nil {
			return fmt.Errorf("looking into %s: %w", arm.Name, err)
		}
	}
	b.keep(r)
	return nil
}

func (b *bare) keep(r Reading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.run.Readings = append(b.run.Readings, r)
}

func (p *process) ask(ctx context.Context, path string) (map[string]float64, error) {
	url := fmt.Sprintf("http://127.0.0.1:%d/%s", p.port, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var values map[string]float64
	return values, json.NewDecoder(response.Body).Decode(&values)
}

// look reads what fills the process, as the agent does, without its names for parts.
func (p *process) look(ctx context.Context) (*Container, error) {
	target, err := live.Open("/proc", p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	s, err := attribution.Take(target)
	if err != nil {
		return nil, err
	}
	found, err := attribution.Attribute(ctx, s, readers.All(time.Now))
	if err != nil {
		return nil, err
	}
	c := &Container{Resident: float64(found.RSS), Unexplained: float64(found.Unexplained)}
	if peak, err := os.ReadFile(filepath.Join(p.cgroup, "memory.max_usage_in_bytes")); err == nil {
		c.Peak, _ = strconv.ParseFloat(strings.TrimSpace(string(peak)), 64)
	}
	free := map[string]float64{}
	for _, u := range found.Usages {
		name := bareParts[u.Reader]
		free[name] += float64(u.FreeResident)
		action := map[string]string{"glibc": "malloc_trim", "go": "debug.FreeOSMemory"}[u.Reader]
		if action != "" && u.Coverage >= attribution.MinCoverage {
			c.Gains = append(c.Gains, Gain{action, "counted", float64(u.Returnable), float64(u.Returnable)})
		}
	}
	sums := map[string]float64{}
	for kind, resident := range found.ByKind() {
		name := string(kind)
		for reader, part := range bareParts {
			if strings.HasPrefix(name, bareKinds[reader]) {
				name = part
			}
		}
		if kind == attribution.GlibcBrk || kind == attribution.Arena {
			name = bareParts["glibc"]
		}
		sums[name] += float64(resident)
	}
	for name, resident := range sums {
		c.Parts = append(c.Parts, Part{name, resident, min(free[name], resident)})
	}
	slices.SortFunc(c.Parts, func(a, b Part) int { return int(b.Resident - a.Resident) })
	return c, nil
}

// bareParts are the agent's names of the parts that stories ask about, by reader, and bareKinds their kinds.
var (
	bareParts = map[string]string{
		"glibc": "glibc arenas", "hotspot": "Java heap", "v8": "V8 heap", "go": "Go heap", "ruby": "Ruby heap",
	}
	bareKinds = map[string]string{
		"glibc": "glibc.arena", "hotspot": "jvm.heap", "v8": "v8.page", "go": "go.heap", "ruby": "ruby.page",
	}
)
