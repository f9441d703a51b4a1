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
