// Package approver is the automatic approver: what the judge of a round is shown,
// its policy text, how its reply is read, and the breaker (approvals.md 10 to 15).
// It is a client of the daemon like any other. No failure in it is an allow.
package approver
