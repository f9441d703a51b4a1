package daemon

import (
	"context"
	"io"

	"agent/internal/store"
)

// ServeFaulty is Serve with a store that fails, stalls or dies on purpose, for
// tests and measurements. No flag and no variable leads here.
func ServeFaulty(ctx context.Context, set Settings, faults *store.Faults, stdin io.Reader, stdout, stderr io.Writer) error {
	opt, err := setUp(set, stderr)
	if err != nil {
		return err
	}
	opt.Stdin, opt.Stdout, opt.Faults = stdin, stdout, faults
	ctx, stop := withSignals(ctx, set.Socket == "")
	defer stop()
	return explain(Run(ctx, opt), opt.Store)
}
