// Package docs holds the guides, and the test that runs every example in them.
package docs

//go:generate sh -c "go run -buildvcs=false ../cmd/agent reference markdown > CLI.md.new && mv CLI.md.new CLI.md"
//go:generate sh -c "go run -buildvcs=false ../cmd/sonny config reference > SETTINGS.md.new && mv SETTINGS.md.new SETTINGS.md"
