package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"agent/protocol"

	jsonv2 "github.com/go-json-experiment/json"
)

// readList reads the JSON list in the file that a flag names; - is standard
// input. A refusal has the code and says which list it wants. What the daemon can
// judge it judges; here the list has its form, since a field that is misspelt must
// not be lost.
func readList[T any](a *app, flag, path string, code protocol.Code, form string) ([]T, error) {
	wrong := func(why string) error { return protocol.Fail(code, flag+" "+path+": "+why) }
	in := a.stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			var p *fs.PathError
			if errors.As(err, &p) {
				err = p.Err
			}
			return nil, wrong(err.Error())
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, protocol.MaxLine+1))
	switch {
	case err != nil:
		return nil, wrong(err.Error())
	case len(text) > protocol.MaxLine:
		return nil, wrong(fmt.Sprintf("it is over %d bytes", protocol.MaxLine))
	}
	var list []T
	if err := jsonv2.Unmarshal(text, &list, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, wrong("it is no JSON list of " + form + ": " + err.Error())
	}
	if list == nil { // null
		return nil, wrong("it is null; [] is an empty one")
	}
	return list, nil
}
