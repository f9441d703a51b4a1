//go:build long

package daemon_test

import "time"

// patience is how long anything may take before it counts as never.
const patience = 3 * time.Minute

const (
	killSamples  = 0 // all of them
	faultSamples = 0
	loadSeeds    = 6
	loadKills    = 40
)
