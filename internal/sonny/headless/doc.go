// Package headless runs one prompt without a screen (sonny.md 18): it makes or takes a
// bot, submits, tells what happens as JSON lines or as text, and ends with one result,
// whatever comes. It reads no config: callers hand it a Ground.
package headless
