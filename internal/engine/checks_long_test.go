//go:build long

package engine

// lineageChecks is how many random histories a test run tries.
const lineageChecks = "150"

// turnChecks is how many random runs of turns a test run tries.
const turnChecks = "300"
