// Package config is what the person set: config.toml (sonny.md 20), a checkout's
// project.toml (3.4), the answers of trust.json (3.5), state.json, and the edits of
// ~/.agent/env (21).
//
// One table, Keys, names every setting. Loading, what is unknown, what `sonny config`
// takes and lists, and docs/SETTINGS.md come from it. A setting of confining keys may
// widen what a bot can do: a wrong value there is an error, not a default.
//
// Every write replaces a file whole, 0600, under a lock on its folder. Nothing here
// watches or waits: Changed says whether a file is another than before.
package config

import (
	"errors"
	"fmt"

	"agent/protocol"
)

// Codes of sonny.md 32 that only Sonny makes.
const (
	SecretRefused  protocol.Code = "config_secret_refused"
	ProjectInvalid protocol.Code = "project_invalid"
)

// Notice is something the person should know that stops nothing.
type Notice struct {
	Kind NoticeKind
	Key  string // the setting it is about, or ""
	Text string
}

// NoticeKind is what a notice is about.
type NoticeKind uint8

// The kinds.
const (
	Other       NoticeKind = iota
	UnknownKey             // of config.toml
	SecretValue            // of config.toml; it is not used
)

// failf is a failure with a code. What the format wraps stays in its chain, so that the
// system's words can be put into a person's.
func failf(code protocol.Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &protocol.Error{Code: code, Detail: err.Error(), Cause: errors.Unwrap(err)}
}

func invalidf(format string, args ...any) error {
	return failf(protocol.ConfigInvalid, format, args...)
}
