// Package secret keeps keys where they belong: what a bot's shell inherits of
// the daemon's environment, and the masking of secrets in what tools return
// (approvals.md 19 and 20).
package secret
