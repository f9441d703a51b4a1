//go:build testhooks

package term

import (
	"encoding/json"
	"os"
	"time"
)

// traceTo records each frame as a line of JSON in a file made 0600 (sonny.md 34). A file
// that cannot be opened is not traced to.
func traceTo(path string) func(FrameStats) {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	enc := json.NewEncoder(f)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return func(s FrameStats) {
		_ = enc.Encode(struct {
			W      int     `json:"w"`
			H      int     `json:"h"`
			Cells  int     `json:"cells"`
			Bytes  int     `json:"bytes"`
			MS     float64 `json:"ms"`
			EchoMS float64 `json:"echo_ms,omitempty"`
		}{s.W, s.H, s.Cells, s.Bytes, ms(s.Took), ms(s.Echo)})
	}
}
