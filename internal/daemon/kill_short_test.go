//go:build !long

package daemon_test

import "time"

// patience is how long anything may take before it counts as never.
const patience = 60 * time.Second

// How much of it is tried in the common run; the long one tries all.
const (
	killSamples  = 12 // points, spread over the scenario
	faultSamples = 2  // points of each kind
	loadSeeds    = 1
	loadKills    = 6
)
