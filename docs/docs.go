// Package docs holds the guides, and the test that runs every example in them.
package docs
