//go:build long

package daemon_test

func init() { leftoverRounds = 60 }
