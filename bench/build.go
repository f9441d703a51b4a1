package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// build makes binaries of this module's commands, static as those that ship.
// to is a file for one of them, or a folder with a slash at its end.
func build(ctx context.Context, to string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-o", to}, packages...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %v: %w\n%s", packages, err, out)
	}
	return nil
}
