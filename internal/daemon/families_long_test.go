//go:build long

package daemon_test

// Every conversation goes over a WebSocket too.
func init() { families = append(families, "responses-ws") }
