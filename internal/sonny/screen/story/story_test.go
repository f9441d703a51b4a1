package story

import (
	"context"

	"agent/internal/sonny/screen/cells"
	"agent/protocol"
)

// still is a screen that shows a story and does nothing.
type still struct{ failed []error }

func (*still) Beside(work func(context.Context) func()) { work(context.Background())() }
func (*still) Shows() bool                              { return true }
func (*still) Look() cells.Look                         { return cells.Look{Width: 80, Fold: cells.DefaultFold()} }
func (s *still) Fail(err error)                         { s.failed = append(s.failed, err) }
func (*still) Cut() bool                                { return false }
func (*still) Filled(*Part)                             {}
func (*still) Loaded()                                  {}
func (*still) Older(*Part, *cells.Transcript)           {}
func (*still) Took()                                    {}
func (*still) Finished(*cells.ToolCall)                 {}
func (*still) Ended(*protocol.TurnFinished)             {}
