package window

import "testing"

func TestPicturesOut(t *testing.T) {
	many := func(n int, size int64) (out []int64) {
		for range n {
			out = append(out, size)
		}
		return out
	}
	const big = 16 << 20 / 3 // base64 of 4 MiB
	for _, tt := range []struct {
		name  string
		sizes []int64
		fresh int
		want  int
	}{
		{"none of none", nil, 0, 0},
		{"16 go", many(16, 1), 1, 0},
		{"the 17th puts four out", many(17, 1), 1, 4},
		{"and so it stays up to 20", many(20, 1), 1, 4},
		{"then eight", many(21, 1), 1, 8},
		{"20 MiB of base64 go at most", many(4, big), 0, 4},
		{"but what the model has not met stays if it fits", many(4, big), 1, 3},
		{"and goes where it does not", many(5, big), 5, 2},
		{"a step never takes more than the step", many(8, big), 1, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := PicturesOut(tt.sizes, tt.fresh); got != tt.want {
				t.Errorf("%d left out, want %d", got, tt.want)
			}
		})
	}
}
