//go:build long

package engine

// lineageChecks is how many random histories a test run tries.
const lineageChecks = "150"
