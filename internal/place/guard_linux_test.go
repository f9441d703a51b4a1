package place

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, alias := filepath.Join(dir, "store"), filepath.Join(dir, "mounted")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, alias); err != nil { // as a mount of the file would show it
		t.Fatal(err)
	}
	first, err := Lock(file+".owner-lock", "store_already_owned")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Guard(file, "store_already_owned", ""); err != nil {
		t.Fatal(err)
	}
	second, err := Lock(alias+".owner-lock", "store_already_owned")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	t.Run("RT-87 one file under two names has one owner", func(t *testing.T) {
		var held *Error
		if err := second.Guard(alias, "store_already_owned", ""); !errors.As(err, &held) || held.Code != "store_already_owned" {
			t.Errorf("got %v", err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if err := second.Guard(alias, "store_already_owned", ""); err != nil {
			t.Errorf("after the first gave it up: %v", err)
		}
	})
}
