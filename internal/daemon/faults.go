package daemon

import (
	"context"
	"io"
	"os"

	"agent/internal/store"
)

// ServeWithFaults is Serve on a socket with a store that fails or stalls as
// faults say, for tests and measurements. No flag and no variable leads here.
func ServeWithFaults(ctx context.Context, set Settings, faults *store.Faults, stdout io.Writer) error {
	opt, err := setUp(set, os.Stderr)
	if err != nil {
		return err
	}
	opt.Stdin, opt.Stdout, opt.Faults = nil, stdout, faults
	return Run(ctx, opt)
}

// ServeFaulty is Serve with a store that fails or dies on purpose.
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
