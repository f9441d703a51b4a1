package engine

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// looks are the pictures that clients name in requests, looked at one request
// at a time: whoever names eight large ones makes the next wait, and no more
// memory is taken.
type looks struct {
	slot   *tool.Slots
	ctx    context.Context // ends when the engine closes
	cancel context.CancelFunc
}

func (l *looks) init() {
	l.slot = tool.NewSlots(1)
	l.ctx, l.cancel = context.WithCancel(context.Background())
}

// checkPictures checks what a request says of pictures, before any is opened.
func checkPictures(paths []string) *protocol.Error {
	if len(paths) > protocol.MaxPictures {
		return protocol.Fail(protocol.PictureLimit, fmt.Sprintf("%d pictures of at most %d", len(paths), protocol.MaxPictures))
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
			return protocol.Fail(protocol.InvalidPicture, fmt.Sprintf("%q is not the absolute path of a file", path))
		}
	}
	return nil
}

// takePictures looks at the pictures that a request names and keeps them under
// holds, all or none. It blocks for as long as that takes: a child of the daemon
// looks at each, and other requests' pictures come first.
func (e *Engine) takePictures(paths []string) (list []tool.PictureData, err *protocol.Error) {
	if e.looks.slot.Acquire(e.looks.ctx) != nil {
		return nil, errClosing
	}
	defer e.looks.slot.Release()
	env := &tool.Env{
		SelfExe: e.cfg.Self, Redact: e.cfg.Redact, Processes: e.processes,
		IsStoreFile: e.store.IsStoreFile, Pictures: pictureKeeper{e},
	}
	for _, path := range paths {
		p, _, f := env.Picture(e.looks.ctx, path)
		if f != nil {
			e.dropPictures(list)
			return nil, pictureError(f, e.looks.ctx.Err() != nil)
		}
		p.Path = string(e.cfg.Redact.Bytes([]byte(path)))
		list = append(list, p)
	}
	return list, nil
}

var errClosing = protocol.Fail(protocol.DaemonDraining, "the daemon is shutting down; ask the next one")

// pictureError is a failed look as a request's error: the codes that a tool has
// for files say here only that this is no usable picture.
func pictureError(f *tool.Failure, closing bool) *protocol.Error {
	switch code := protocol.Code(f.Code); {
	case closing:
		return errClosing
	case code == protocol.PictureLimit, code == protocol.StorageError, code == protocol.CapacityExhausted:
		return protocol.Fail(code, f.Detail)
	}
	return protocol.Fail(protocol.InvalidPicture, f.Detail)
}

// pictureKeeper puts pictures into the store.
type pictureKeeper struct{ e *Engine }

// pictureBuffers hold the piece of a picture that is written at once.
var pictureBuffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// Keep puts a picture's bytes into the store, a piece at a time, under a hold.
func (k pictureKeeper) Keep(p *tool.PictureData, bytes io.Reader) error {
	row := &store.PictureRow{Hash: p.Hash, MediaType: p.MediaType, Width: p.Width, Height: p.Height, Bytes: p.Bytes}
	var hold int64
	var there bool
	err := k.e.store.Do("keep_picture", func(tx *store.Tx) (err error) {
		hold, there, err = tx.HoldPicture(row)
		return err
	})
	if err != nil {
		return err
	}
	p.Hold = hold // and not before: what was not committed may be another's later
	if there {
		return nil
	}
	buffer := pictureBuffers.Get().(*[256 << 10]byte)
	defer pictureBuffers.Put(buffer)
	for at := int64(0); at < p.Bytes; {
		piece := buffer[:min(int64(len(buffer)), p.Bytes-at)]
		if _, err := io.ReadFull(bytes, piece); err != nil {
			return err
		}
		err := k.e.store.Do("picture_piece", func(tx *store.Tx) error { return tx.WritePicture(p.Hash, at, piece) })
		if err != nil {
			return err
		}
		at += int64(len(piece))
	}
	return nil
}

// Drop gives up what Keep kept.
func (k pictureKeeper) Drop(p tool.PictureData) { k.e.dropPictures([]tool.PictureData{p}) }

// dropPictures gives up the holds of pictures that nothing came to show. It
// does not block, and may be called where the store's worker runs. A store that
// refuses leaves them to the next start.
func (e *Engine) dropPictures(list []tool.PictureData) {
	if len(list) == 0 {
		return
	}
	go e.store.Go("drop_pictures", func(tx *store.Tx) error {
		for i := range list {
			if err := tx.DropHold(list[i].Hold); err != nil {
				return err
			}
		}
		return nil
	}, func(err error) {
		if err != nil {
			e.cfg.Log.Warn("pictures that nothing shows stay until the next start", "error", err)
		}
	})
}

// dropOldHolds removes the pictures that an earlier daemon kept for what it did
// not come to write.
func (e *Engine) dropOldHolds() error {
	for found := true; found; {
		err := e.store.Do("drop_pictures", func(tx *store.Tx) (err error) {
			found, err = tx.DropOldHold()
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shown are kept pictures as a row names them.
func shown(list []tool.PictureData) (rows []store.ShownPicture) {
	for i := range list {
		p := &list[i]
		rows = append(rows, store.ShownPicture{Hash: p.Hash, Hold: p.Hold, Path: p.Path, MediaType: p.MediaType, Bytes: p.Bytes})
	}
	return rows
}

// inItem are pictures as an item holds them.
func inItem(rows []store.ShownPicture) (list []model.Picture) {
	for i := range rows {
		list = append(list, model.Picture{Hash: rows[i].Hash, MediaType: rows[i].MediaType, Bytes: rows[i].Bytes})
	}
	return list
}
