// Command bench measures the daemon by the workloads of the runtime
// document's section 32 and compares what it finds with the targets. It builds
// the agent command, drives it as its users do, and knows nothing of its
// insides but the store's schema, which it fills for the long histories. What
// cannot be seen from outside it asks a daemon of its own (probed.go).
//
//	go run ./bench -w W1,W6,start -json figures.json
//
// Sonny is measured on a terminal, with the daemon that it starts itself
// (sonny.go).
//
// Every run is a fresh daemon process. The model server is a process of its
// own and never counted. docs/MEASURE.md explains the table.
package main
