// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pagemap

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/memfit/memfit/internal/memory"
)

// Text formats runs: the letter of each state, and the number of blocks unless it is one, for example "L12F3A".
func Text(runs []Run) string {
	var b []byte
	for _, r := range runs {
		b = append(b, byte(r.State))
		if r.Blocks != 1 {
			b = strconv.AppendInt(b, int64(r.Blocks), 10)
		}
	}
	return string(b)
}

var errLong = fmt.Errorf("it has more than %d bytes", maxText)

// Parse parses the output of [Text], which is untrusted, for a region of this size with blocks of this size.
func Parse(text string, size, block memory.Bytes) ([]Run, error) {
	if len(text) > maxText {
		return nil, errLong
	}
	if block < Page || size < 0 || size/block > maxBlocks {
		return nil, fmt.Errorf("blocks of %s are too small or more than %d for a region of %s", block, maxBlocks, size)
	}
	want := int((size + block - 1) / block)
	var runs []Run
	for text != "" {
		run, rest, err := parseRun(text)
		if err != nil {
			return nil, err
		}
		if want -= run.Blocks; want < 0 {
			return nil, errors.New("it has more blocks than its region")
		}
		runs, text = append(runs, run), rest
	}
	if want != 0 {
		return nil, fmt.Errorf("%d blocks are missing", want)
	}
	return runs, nil
}

func parseRun(text string) (run Run, rest string, err error) {
	switch run.State = State(text[0]); run.State {
	case InUse, Mixed, Free, Absent:
	default:
		return run, "", fmt.Errorf("%q is not a state of a block", text[:1])
	}
	end := 1
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	run.Blocks = 1
	if end > 1 {
		if run.Blocks, err = strconv.Atoi(text[1:end]); err != nil || run.Blocks < 1 || run.Blocks > maxBlocks {
			return run, "", fmt.Errorf("%q is not a number of blocks", text[1:min(end, 1+10)])
		}
	}
	return run, text[end:], nil
}
