package scripted

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The strongest form of "no connection was attempted": the code that could
// make one is not there.
func TestNoNetworkCode(t *testing.T) {
	t.Run("PV-53 the provider holds no code that can open a connection", func(t *testing.T) {
		out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		deps := strings.Fields(string(out))
		if !slices.Contains(deps, "agent/internal/model") {
			t.Fatalf("the list is not what was asked for: %v", deps)
		}
		for _, name := range []string{"net", "net/http", "os/exec"} {
			if slices.Contains(deps, name) {
				t.Errorf("package %s is linked in", name)
			}
		}
	})
}
