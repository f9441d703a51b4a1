package cli

import (
	"path/filepath"

	"agent/internal/place"
	"agent/internal/secret"
	"agent/protocol"
)

// What the setting web_search of config.toml may say. live, the default, is the
// daemon's own.
const (
	searchLive     = "live"
	searchCached   = "cached"
	searchDisabled = "disabled" // new bots get neither web_fetch nor web_search by default
)

// webSearch is the setting, searchLive where there is none (section 17).
func webSearch() (string, error) {
	dir, err := place.AgentDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "config.toml")
	file, err := secret.ReadConfig(path)
	if err != nil {
		return "", err
	}
	value, there := file["web_search"]
	if !there {
		return searchLive, nil
	}
	switch value {
	case searchLive, searchCached, searchDisabled:
		return value.(string), nil
	}
	return "", protocol.Fail(protocol.ConfigInvalid, path+`: web_search must be "live", "cached" or "disabled"`)
}
