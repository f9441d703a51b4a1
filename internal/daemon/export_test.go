package daemon

import (
	"context"
	"io"
	"os"

	"agent/internal/store"
)

// ServeWithFaults is Serve in this process, with a store that fails on purpose.
func ServeWithFaults(ctx context.Context, set Settings, faults *store.Faults, stdout io.Writer) error {
	opt, err := setUp(set, os.Stderr)
	if err != nil {
		return err
	}
	opt.Stdin, opt.Stdout, opt.Faults = nil, stdout, faults
	return Run(ctx, opt)
}
