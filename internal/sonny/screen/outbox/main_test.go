package outbox

import (
	"testing"

	"agent/internal/sonny/sonnytest"
)

func TestMain(m *testing.M) { sonnytest.Main(m) }
