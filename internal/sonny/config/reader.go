package config

import (
	"slices"

	"agent/protocol"
)

// A Reader reads settings further than this package can: names of files, keys. It gives
// what is wrong with them, each fault worded the same at each reading; nil for nothing.
type Reader func(*Config) []*protocol.Error

// worse is the first thing that a reader finds wrong with one config and not with
// another, as a usage error; what was wrong before stands in nobody's way.
func (read Reader) worse(before, after *Config) error {
	if read == nil {
		return nil
	}
	was := read(before)
	for _, fault := range read(after) {
		if slices.ContainsFunc(was, func(f *protocol.Error) bool { return f.Detail == fault.Detail }) {
			continue
		}
		if fault.Code == protocol.ConfigInvalid {
			return &protocol.Error{Code: protocol.UsageError, Detail: fault.Detail, Cause: fault}
		}
		return fault
	}
	return nil
}

// worseText is worse of two texts of a config.toml.
func (read Reader) worseText(path string, before, after []byte) error {
	if read == nil {
		return nil
	}
	return read.worse(configOf(path, before), configOf(path, after))
}

// configOf is what a text says as the config.toml at path, by itself.
func configOf(path string, text []byte) *Config {
	r := newResolver()
	if d, err := parse(text); err == nil {
		f := fileWalk{resolver: r, path: path, doc: d}
		f.table(nil, d.tree)
	}
	return fill(r.settings())
}
