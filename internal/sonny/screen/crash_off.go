//go:build !testhooks

package screen

// testFeatures are parts of the screen for its tests alone: a build that ships has none.
func testFeatures() []feature { return nil }
