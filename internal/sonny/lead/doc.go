// Package lead is a folder and the bots that work for it: how its project is called,
// which lead is found again, what a row means, and what is sent when a lead or a task
// is made (sonny.md 3 to 6 and 26). It draws nothing and reads no config: callers hand
// it Settings.
package lead
