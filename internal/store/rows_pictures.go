package store

import (
	"io"

	"zombiezen.com/go/sqlite"
)

// A picture is kept once, by its hash, and goes with the last row that names
// it: a node that shows it, a submission that waits, or a hold. A hold stands
// for what is about to name the picture, so that its bytes are in the store, and
// out of memory, before that is written (protocol.md 8, submit).

var (
	qPictureAdd  = stmt(`INSERT OR IGNORE INTO pictures (hash, media_type, width, height, data) VALUES (?1, ?2, ?3, ?4, zeroblob(?5))`)
	qPictureRow  = stmt(`SELECT rowid FROM pictures WHERE hash = ?1`)
	qPictureSize = stmt(`SELECT length(data) FROM pictures WHERE hash = ?1`)
	qDropPic     = stmt(`DELETE FROM pictures WHERE hash = ?1
		AND NOT EXISTS (SELECT 1 FROM node_pictures WHERE hash = ?1)
		AND NOT EXISTS (SELECT 1 FROM turn_pictures WHERE hash = ?1)
		AND NOT EXISTS (SELECT 1 FROM picture_holds WHERE hash = ?1)`)

	qPictureNamed = stmt(`SELECT 1 FROM (SELECT 1 FROM node_pictures WHERE hash = ?1
		UNION ALL SELECT 1 FROM turn_pictures WHERE hash = ?1) LIMIT 1`)

	qHoldAdd  = stmt(`INSERT INTO picture_holds (hash) VALUES (?1)`)
	qHoldLast = stmt(`SELECT last_insert_rowid()`)
	qHoldHash = stmt(`SELECT hash FROM picture_holds WHERE id = ?1`)
	qHoldDrop = stmt(`DELETE FROM picture_holds WHERE id = ?1`)
	qHoldAny  = stmt(`SELECT min(id) FROM picture_holds`)

	qNodePictureAdd = stmt(`INSERT OR IGNORE INTO node_pictures (node, hash, path) VALUES (?1, ?2, ?3)`)
	qNodePictures   = stmt(`SELECT p.hash, p.media_type, p.width, p.height, length(p.data), np.refused, np.path
		FROM node_pictures np JOIN pictures p ON p.hash = np.hash WHERE np.node = ?1`)
	qPictureRefused = stmt(`UPDATE node_pictures SET refused = 1 WHERE node = ?1 AND hash = ?2`)
	qNodePicsOf     = stmt(`SELECT hash FROM node_pictures WHERE node = ?1`)

	qTurnPictureAdd = stmt(`INSERT INTO turn_pictures (turn, seq, hash, path) VALUES (?1, ?2, ?3, ?4)`)
	qTurnPictures   = stmt(`SELECT p.hash, p.media_type, length(p.data), tp.path
		FROM turn_pictures tp JOIN pictures p ON p.hash = tp.hash WHERE tp.turn = ?1 ORDER BY tp.seq`)
	qTurnPicsOf      = stmt(`SELECT hash FROM turn_pictures WHERE turn = ?1`)
	qTurnPictureDrop = stmt(`DELETE FROM turn_pictures WHERE turn = ?1`)
)

// PictureWeight is what a picture counts towards a window, in bytes
// (runtime.md 19); its base64 is put in as a request is sent. TotalBytes
// includes it.
const PictureWeight = 8 << 10

// PictureRow is a picture to keep.
type PictureRow struct {
	Hash          [32]byte
	MediaType     string
	Width, Height int
	Bytes         int64
}

// HoldPicture begins to keep a picture, once however often it is kept, under a
// hold. The hold ends with the row that shows it, or with DropHold. There
// reports that something shows the picture already. Else all of its bytes are
// to be written with WritePicture before anything may: what only a hold names
// may be a piece.
func (tx *Tx) HoldPicture(p *PictureRow) (hold int64, there bool, err error) {
	c := tx.Conn()
	if err := qPictureAdd.exec(c, p.Hash[:], p.MediaType, p.Width, p.Height, p.Bytes); err != nil {
		return 0, false, err
	}
	if err := qHoldAdd.exec(c, p.Hash[:]); err != nil {
		return 0, false, err
	}
	if hold, err = integer(c, qHoldLast); err != nil {
		return 0, false, err
	}
	there, err = one(c, qPictureNamed, nil, p.Hash[:])
	return hold, there, err
}

// WritePicture writes a piece of a picture that HoldPicture asked for.
func (tx *Tx) WritePicture(hash [32]byte, at int64, piece []byte) error {
	c := tx.Conn()
	row, err := integer(c, qPictureRow, hash[:])
	if err != nil {
		return err
	}
	if row == 0 {
		return rowInvalid("pictures", 0, "hash")
	}
	b, err := c.OpenBlob("main", "pictures", "data", row, true)
	if err != nil {
		return failed(err)
	}
	if _, err = b.Seek(at, io.SeekStart); err == nil {
		_, err = b.Write(piece)
	}
	if cerr := b.Close(); err == nil {
		err = cerr
	}
	return failed(err)
}

// DropHold ends a hold whose picture nothing came to show; a hold that has
// ended already is none of its business.
func (tx *Tx) DropHold(hold int64) error {
	c := tx.Conn()
	hashes, err := hashesOf(c, qHoldHash, hold)
	if err != nil {
		return err
	}
	if err := qHoldDrop.exec(c, hold); err != nil {
		return err
	}
	_, err = tx.dropPictures(hashes)
	return err
}

// DropOldHold ends one of the holds that an earlier daemon left, if there is
// any. Nothing may hold a picture yet.
func (tx *Tx) DropOldHold() (found bool, err error) {
	hold, err := integer(tx.Conn(), qHoldAny)
	if err != nil || hold == 0 {
		return false, err
	}
	return true, tx.DropHold(hold)
}

// dropPictures removes those of some pictures that nothing names any more, and
// gives their bytes.
func (tx *Tx) dropPictures(hashes [][]byte) (freed int64, err error) {
	c := tx.Conn()
	for _, h := range hashes {
		size, err := integer(c, qPictureSize, h)
		if err != nil {
			return freed, err
		}
		if err := qDropPic.exec(c, h); err != nil {
			return freed, err
		}
		freed += size * int64(c.Changes())
	}
	return freed, nil
}

func hashesOf(c *sqlite.Conn, q *query, id int64) (hashes [][]byte, err error) {
	err = q.rows(c, func(s *sqlite.Stmt) error {
		hashes = append(hashes, colBytes(s, 0, nil))
		return nil
	}, id)
	return hashes, err
}

// ShownPicture is a kept picture that a row names.
type ShownPicture struct {
	Hash      [32]byte
	Hold      int64  // 0: none, another row names it
	Path      string // where a client had it, "" for a picture that a tool read
	MediaType string // read, not written
	Bytes     int64  // raw; read, not written
}

// showPictures records what a node shows, and ends the holds.
func (tx *Tx) showPictures(node int64, list []ShownPicture) error {
	for i := range list {
		p := &list[i]
		if err := qNodePictureAdd.exec(tx.Conn(), node, p.Hash[:], null(p.Path)); err != nil {
			return err
		}
		if err := tx.endHold(p.Hold); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) endHold(hold int64) error {
	if hold == 0 {
		return nil
	}
	return tx.mustChange(qHoldDrop, hold)
}

// AddTurnPictures records the pictures of a submission, and ends the holds.
func (tx *Tx) AddTurnPictures(turn int64, list []ShownPicture) error {
	for i := range list {
		p := &list[i]
		if err := qTurnPictureAdd.exec(tx.Conn(), turn, i, p.Hash[:], null(p.Path)); err != nil {
			return err
		}
		if err := tx.endHold(p.Hold); err != nil {
			return err
		}
	}
	return nil
}

// TurnPictures are the pictures of a submission that waits, in order.
func TurnPictures(c *sqlite.Conn, turn int64) (list []ShownPicture, err error) {
	err = qTurnPictures.rows(c, func(s *sqlite.Stmt) error {
		p := ShownPicture{MediaType: s.ColumnText(1), Bytes: s.ColumnInt64(2), Path: s.ColumnText(3)}
		s.ColumnBytes(0, p.Hash[:])
		list = append(list, p)
		return nil
	}, turn)
	return list, err
}

// DropTurnPictures removes the pictures of a submission that waits no more: its
// node shows them, or it never ran and they go unless something else shows them.
func (tx *Tx) DropTurnPictures(turn int64) error {
	c := tx.Conn()
	hashes, err := hashesOf(c, qTurnPicsOf, turn)
	if err != nil || len(hashes) == 0 {
		return err
	}
	if err := qTurnPictureDrop.exec(c, turn); err != nil {
		return err
	}
	_, err = tx.dropPictures(hashes)
	return err
}

// PictureAt reads part of a picture's bytes.
func PictureAt(c *sqlite.Conn, hash [32]byte, at int64, p []byte) (int, error) {
	var row int64
	ok, err := qPictureRow.row(c, func(s *sqlite.Stmt) { row = s.ColumnInt64(0) }, hash[:])
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, rowInvalid("pictures", 0, "hash")
	}
	return blobAt(c, "pictures", "data", row, at, p)
}

// PictureInfo is what is known of a node's picture besides its bytes.
type PictureInfo struct {
	Hash          [32]byte
	MediaType     string
	Width, Height int64
	Bytes         int64  // raw
	Refused       bool   // the provider would not take it: it is not sent again
	Path          string // where a client had it, "" for one that a tool read
}

// NodePictures calls f for each picture of a node, once for one that it shows
// more often.
func NodePictures(c *sqlite.Conn, node int64, f func(PictureInfo)) error {
	return qNodePictures.rows(c, func(s *sqlite.Stmt) error {
		i := PictureInfo{
			MediaType: s.ColumnText(1), Width: s.ColumnInt64(2), Height: s.ColumnInt64(3),
			Bytes: s.ColumnInt64(4), Refused: s.ColumnBool(5), Path: s.ColumnText(6),
		}
		s.ColumnBytes(0, i.Hash[:])
		f(i)
		return nil
	}, node)
}

// RefusePicture notes that a provider did not take a node's picture.
func (tx *Tx) RefusePicture(node int64, hash [32]byte) error {
	return tx.mustChange(qPictureRefused, node, hash[:])
}
