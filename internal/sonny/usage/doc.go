// Package usage counts tokens and what they cost (sonny.md 27): sums over calls, turns,
// models and days, the context meter, prices. It asks nobody; callers hand it what the
// daemon reports.
package usage
