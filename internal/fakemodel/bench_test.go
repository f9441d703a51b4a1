package fakemodel

import (
	"strings"
	"testing"
)

// BenchmarkCheck is what a request costs whose history holds six texts of
// 64 KiB.
func BenchmarkCheck(b *testing.B) {
	items := []string{say(strings.Repeat("x", 64<<10))}
	for range 5 {
		items = append(items, items[0])
	}
	body := bodyOf(anth, "m", items...)
	h := newHistory()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := newChecker(h, &Options{}, &Request{Family: anth}).body(strings.NewReader(body)); err != nil {
			b.Fatal(err)
		}
	}
}
