//go:build long

package sandbox

func init() { killedCalls = 1000 }
