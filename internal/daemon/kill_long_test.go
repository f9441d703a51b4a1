//go:build long

package daemon_test

const (
	killSamples  = 0 // all of them
	faultSamples = 0
	loadSeeds    = 6
	loadKills    = 40
)
