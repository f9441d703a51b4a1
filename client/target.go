package client

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agent/internal/place"
	"agent/protocol"
)

// Target is a store and the socket of its daemon, both absolute: Resolve makes
// one. Without Socket it is the store's; without Store too it is what the
// environment names. Store may be missing where nothing is started.
type Target struct{ Store, Socket string }

// whole refuses a target that names no place for a daemon to be started at: its
// log would lie wherever the caller is.
func (t Target) whole() error {
	if !filepath.IsAbs(t.Store) {
		return protocol.Fail(protocol.InvalidStorePath, fmt.Sprintf("to start a daemon Target.Store must be an absolute path, and it is %q; Resolve makes one", t.Store))
	}
	if !filepath.IsAbs(t.Socket) {
		return protocol.Fail(protocol.InvalidSocketPath, fmt.Sprintf("to start a daemon Target.Socket must be an absolute path, and it is %q; Resolve makes one", t.Socket))
	}
	return nil
}

// Resolve picks store and socket by the command's rules (section 2). Empty
// arguments are flags not given; an empty variable counts as unset. The store
// is store, AGENT_STORE, or ~/.agent/state.sqlite; the socket is socket,
// AGENT_SOCKET unless a store was given, or derived from the store. It touches
// nothing; an unsafe private folder is reported by the first dial. Errors:
// usage, invalid_store_path, store_path_unresolved, invalid_socket_path.
func Resolve(store, socket string) (Target, error) {
	given := store != ""
	if !given {
		store = os.Getenv("AGENT_STORE")
	}
	if store == "" {
		home, err := place.DefaultStore()
		if err != nil {
			return Target{}, protocol.Fail(protocol.UsageError, "no store: give --store or set AGENT_STORE or HOME")
		}
		store = home
	}
	canonical, err := place.Canonical(store)
	if err != nil {
		return Target{}, placeError(err)
	}
	if socket == "" && !given {
		socket = os.Getenv("AGENT_SOCKET")
	}
	if socket == "" {
		socket, err = place.SocketFor(canonical)
	} else {
		socket, err = checkedSocket(socket)
	}
	if err != nil {
		return Target{}, placeError(err)
	}
	return Target{Store: canonical, Socket: socket}, nil
}

// SocketFor derives the socket of a store. Errors: invalid_store_path,
// store_path_unresolved.
func SocketFor(store string) (string, error) {
	canonical, err := place.Canonical(store)
	if err != nil {
		return "", placeError(err)
	}
	socket, err := place.SocketFor(canonical)
	return socket, placeError(err)
}

// checkedSocket makes a stated socket absolute. It is not canonical: the
// address is used as it was given.
func checkedSocket(socket string) (string, error) {
	abs, err := filepath.Abs(socket)
	if err != nil {
		return "", protocol.Fail(protocol.InvalidSocketPath, err.Error())
	}
	if err := place.CheckSocketPath(abs); err != nil {
		return "", err
	}
	return abs, nil
}

// placeError gives a refusal of package place the type that this package's
// callers test.
func placeError(err error) error {
	var refused *place.Error
	if errors.As(err, &refused) {
		return &protocol.Error{Code: protocol.Code(refused.Code), Detail: refused.Detail, Cause: err}
	}
	return err
}
