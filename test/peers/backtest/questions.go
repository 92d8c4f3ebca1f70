// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// answer has the results of one set for the questions of docs/evidence/sizing, each of which has one picture.
type answer struct {
	verdict Verdict
	metrics map[string]Metrics // by policy
	paired  []Paired
	changes []Change
}

// drawQuestions draws the picture of each question into a folder.
func drawQuestions(dir string, all []answer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var curves, metrics []*plot.Plot
	var vpa, before []ratios
	for _, a := range all {
		c, errC := curvePlot(a.verdict)
		m, errM := metricsPlot(a)
		if err := errors.Join(errC, errM); err != nil {
			return fmt.Errorf("drawing %s: %w", a.verdict.Set, err)
		}
		curves, metrics = append(curves, c), append(metrics, m)
		perVPA, perBefore := ratios{set: a.verdict.Set}, ratios{set: a.verdict.Set}
		for _, p := range a.paired {
			perVPA.add(p.Price, (p.Against+p.Difference)/p.Against)
		}
		for _, c := range a.changes {
			perBefore.add(c.Price, c.Now/c.Before)
		}
		vpa, before = append(vpa, perVPA), append(before, perBefore)
	}
	return errors.Join(
		drawTiles(filepath.Join(dir, "kills.png"), curves),
		drawTiles(filepath.Join(dir, "words.png"), metrics),
		drawRatios(filepath.Join(dir, "cost.png"), "total cost of memfit per cost of VPA", vpa),
		drawRatios(filepath.Join(dir, "before.png"), "total cost now per cost of the rules before", before),
	)
}

// drawTiles draws plots in two columns.
func drawTiles(path string, all []*plot.Plot) (err error) {
	const cols, width, height, pad = 2, 14 * vg.Centimeter, 9 * vg.Centimeter, vg.Centimeter / 2
	rows := (len(all) + cols - 1) / cols
	picture := vgimg.New(cols*width, vg.Length(rows)*height)
	tiles := draw.Tiles{Rows: rows, Cols: cols, PadX: pad, PadY: pad}
	for i, p := range all {
		p.Draw(tiles.At(draw.New(picture), i%cols, i/cols))
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = vgimg.PngCanvas{Canvas: picture}.WriteTo(f)
	return err
}

// metricsPlot shows the products by common metrics: relative slack, and container-days with an OOM kill.
func metricsPlot(a answer) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = a.verdict.Set
	p.X.Label.Text = "relative slack"
	p.Y.Label.Text = "container-days with an OOM kill, %"
	p.Add(plotter.NewGrid())
	at := func(policy string) plotter.XY {
		w := a.metrics[policy]
		return plotter.XY{X: w.RelativeSlack, Y: 100 * (1 - w.Quiet)}
	}
	line, err := plotter.NewLine(plotter.XYs{at("memfit-frugal"), at("memfit"), at("memfit-cautious")})
	if err != nil {
		return nil, err
	}
	line.Color, line.Width = blue, vg.Points(1.5)
	p.Add(line)
	named := labels{}
	for _, policy := range []string{"memfit-frugal", "memfit", "memfit-cautious", "vpa", "krr", "attune", "cruisekube"} {
		named.at, named.names = append(named.at, at(policy)), append(named.names, policy)
	}
	marks, err := plotter.NewScatter(named.at)
	if err != nil {
		return nil, err
	}
	marks.Color, marks.Shape, marks.Radius = grey, draw.CircleGlyph{}, vg.Points(3)
	p.Add(marks)
	p.X.Min, p.X.Max, p.Y.Min = 0, max(1, p.X.Max), 0
	p.Y.Max = max(1, 1.1*p.Y.Max)
	p.Add(named)
	return p, nil
}

// ratios are ratios of costs on one set, by price.
type ratios struct {
	set string
	at  plotter.XYs
}

func (r *ratios) add(price, ratio float64) { r.at = append(r.at, plotter.XY{X: price, Y: ratio}) }

// drawRatios draws a line for each set. Below 1 the current memfit is cheaper.
func drawRatios(path, what string, all []ratios) error {
	p := plot.New()
	p.X.Label.Text = "price of a kill, GiB-days"
	p.Y.Label.Text = what
	p.X.Scale = plot.LogScale{}
	var ticks plot.ConstantTicks
	for _, price := range prices {
		ticks = append(ticks, plot.Tick{Value: price, Label: strconv.FormatFloat(price, 'g', -1, 64)})
	}
	p.X.Tick.Marker = ticks
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	shades := []color.Color{blue, orange, grey, sky, color.Black}
	for i, r := range all {
		if len(r.at) == 0 {
			continue
		}
		line, points, err := plotter.NewLinePoints(r.at)
		if err != nil {
			return err
		}
		shade := shades[i%len(shades)]
		line.Color, line.Width, points.Color, points.Shape = shade, vg.Points(1.5), shade, draw.CircleGlyph{}
		p.Add(line, points)
		p.Legend.Add(r.set, line, points)
	}
	p.Y.Min, p.Y.Max = min(0.5, p.Y.Min), max(1.2, 1.3*p.Y.Max)
	return p.Save(18*vg.Centimeter, 9*vg.Centimeter, path)
}
