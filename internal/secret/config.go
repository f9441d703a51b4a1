package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/pelletier/go-toml/v2"

	"agent/protocol"
)

// maxConfig bounds the file that is read, in bytes.
const maxConfig = 256 << 10

// ReadConfig reads a config.toml; nil when there is none. A file that cannot be
// read, is no regular file, is longer than 256 KiB or is no TOML is a
// *protocol.Error config_invalid, which never holds a value of the file.
func ReadConfig(path string) (map[string]any, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, invalid("%v; it must lie in a folder of yours and be readable to you, or not be there", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, invalid("%v", err)
	}
	if !info.Mode().IsRegular() {
		return nil, invalid("%s: not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, invalid("%v", err)
	}
	if len(data) > maxConfig {
		return nil, invalid("%s: longer than %d bytes", path, maxConfig)
	}
	file, err := ParseConfig(data)
	if err != nil {
		return nil, invalid("%s: %v", path, err)
	}
	return file, nil
}

// ParseConfig reads the text of a TOML file. The error says where it is none, and
// holds nothing of the text.
func ParseConfig(data []byte) (file map[string]any, err error) {
	if err = toml.Unmarshal(data, &file); err == nil {
		return file, nil
	}
	// The parser's message may quote the file, which may hold secrets.
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, column := at.Position()
		return nil, fmt.Errorf("line %d, column %d: not valid TOML", line, column)
	}
	return nil, errors.New("not valid TOML")
}

func invalid(format string, args ...any) error {
	return &protocol.Error{Code: protocol.ConfigInvalid, Detail: fmt.Sprintf(format, args...)}
}
