// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/jsonpath"

	"github.com/memfit/memfit/internal/memory"
)

// What is here, kubectl has in k8s.io/kubectl/pkg/cmd/get. That package brings 160 others, and its order ends the
// program where the values of a field are not all of one type.

// column is one of -o custom-columns=.
type column struct {
	heading string
	path    *jsonpath.JSONPath
}

// columnsOf reads HEADING:PATH,HEADING:PATH.
func columnsOf(spec string) (columns []column, err error) {
	for part := range strings.SplitSeq(spec, ",") {
		heading, expression, ok := strings.Cut(part, ":")
		if !ok || heading == "" || expression == "" {
			return nil, errors.New("name columns as HEADING:PATH, for example NAME:.name,USE:.containers[*].use")
		}
		path, err := parse(expression)
		if err != nil {
			return nil, err
		}
		columns = append(columns, column{heading, path})
	}
	return columns, nil
}

// parse reads a path as kubectl takes it: {.a.b}, .a.b or a.b.
func parse(expression string) (*jsonpath.JSONPath, error) {
	inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(expression), "{"), "}")
	path := jsonpath.New("path").AllowMissingKeys(true)
	if err := path.Parse("{." + strings.TrimPrefix(inner, ".") + "}"); err != nil {
		return nil, fmt.Errorf("reading the path %q: %w", expression, err)
	}
	return path, nil
}

// custom prints the columns of -o custom-columns= as kubectl does: "<none>" where an object has no value.
func custom(w io.Writer, columns []column, objects []any, noHeaders bool) error {
	var lines []string
	cells := make([]string, len(columns))
	if !noHeaders {
		for i := range columns {
			cells[i] = Line(columns[i].heading)
		}
		lines = append(lines, strings.Join(cells, "\t"))
	}
	for _, object := range objects {
		fields, err := fieldsOf(object)
		if err != nil {
			return err
		}
		for i := range columns {
			if cells[i], err = columns[i].of(fields); err != nil {
				return err
			}
		}
		lines = append(lines, strings.Join(cells, "\t"))
	}
	laid, err := lay(lines)
	if err != nil {
		return err
	}
	for _, line := range laid {
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// of is the cell of an object.
func (c *column) of(fields map[string]any) (string, error) {
	values, err := find(c.path, fields)
	if err != nil {
		return "", fmt.Errorf("column %s: %w", c.heading, err)
	}
	if len(values) == 0 {
		return "<none>", nil
	}
	texts := make([]string, 0, len(values))
	for _, v := range values {
		texts = append(texts, Line(fmt.Sprint(v)))
	}
	return strings.Join(texts, ","), nil
}

func find(path *jsonpath.JSONPath, fields map[string]any) (values []any, err error) {
	results, err := path.FindResults(fields)
	if err != nil {
		return nil, err
	}
	for _, result := range results {
		for _, v := range result {
			if v.IsValid() && v.CanInterface() && v.Interface() != nil {
				values = append(values, v.Interface())
			}
		}
	}
	return values, nil
}

// sort orders items by a field as kubectl does, the smallest first and those without it before all. It is stable.
func (l *List) sort(by string) error {
	if by == "" || len(l.Items) == 0 {
		return nil
	}
	path, err := parse(by)
	if err != nil {
		return fmt.Errorf("--sort-by: %w", err)
	}
	all, found := make([]keyed, len(l.Items)), false
	for i := range l.Items {
		fields, err := fieldsOf(l.Items[i].Object)
		if err != nil {
			return err
		}
		values, err := find(path, fields)
		if err != nil {
			return fmt.Errorf("--sort-by %s: %w", by, err)
		}
		all[i].item = l.Items[i]
		if len(values) > 0 {
			all[i].by(fmt.Sprint(values[0]))
			found = true
		}
	}
	if !found {
		return fmt.Errorf("--sort-by %s: no item has such a field (-o json shows the fields)", by)
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.amount.Cmp(b.amount), cmp.Compare(a.text, b.text))
	})
	for i := range all {
		l.Items[i] = all[i].item
	}
	return nil
}

// keyed is an item with the value that it is ordered by: what is not there comes first, then numbers and amounts
// ("64Mi" is less than "1Gi"), then text.
type keyed struct {
	item   Item
	rank   int
	amount resource.Quantity
	text   string
}

func (k *keyed) by(value string) {
	if amount, err := memory.ParseQuantity(value); err == nil {
		k.rank, k.amount = 1, amount
	} else {
		k.rank, k.text = 2, value
	}
}
