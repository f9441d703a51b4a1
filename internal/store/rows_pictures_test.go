package store

import (
	"bytes"
	"crypto/sha256"
	"testing"
)

// pictures is a store with the means to keep pictures as the engine does.
type pictures struct {
	*Store
	t *testing.T
}

func (s pictures) do(job func(tx *Tx) error) {
	s.t.Helper()
	if err := s.Do("test", job); err != nil {
		s.t.Fatal(err)
	}
}

// hold keeps data, in pieces, unless something shows it already.
func (s pictures) hold(data []byte) (hold int64, there bool) {
	s.t.Helper()
	row := &PictureRow{Hash: sha256.Sum256(data), MediaType: "image/png", Width: 1, Height: 1, Bytes: int64(len(data))}
	s.do(func(tx *Tx) (err error) {
		hold, there, err = tx.HoldPicture(row)
		return err
	})
	for at := 0; at < len(data) && !there; at += 1000 {
		s.do(func(tx *Tx) error { return tx.WritePicture(row.Hash, int64(at), data[at:min(at+1000, len(data))]) })
	}
	return hold, there
}

func (s pictures) drop(hold int64) {
	s.t.Helper()
	s.do(func(tx *Tx) error { return tx.DropHold(hold) })
}

// wants checks how many pictures and holds there are.
func (s pictures) wants(kept, holds int64) {
	s.t.Helper()
	if k, h := s.count(s.t, "pictures"), s.count(s.t, "picture_holds"); k != kept || h != holds {
		s.t.Errorf("%d pictures and %d holds, want %d and %d", k, h, kept, holds)
	}
}

// holds checks a picture's bytes.
func (s pictures) holds(data []byte) {
	s.t.Helper()
	got := make([]byte, len(data))
	err := s.Read(s.t.Context(), "test", func(r *Reader) error {
		_, err := PictureAt(r.Conn(), sha256.Sum256(data), 0, got)
		return err
	})
	if err != nil || !bytes.Equal(got, data) {
		s.t.Errorf("other bytes are kept: %v", err)
	}
}

func TestPictureHolds(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) pictures {
		s := mustOpen(t, Options{Path: storePath(t)})
		newBots(t, s, "Ada")
		s.sql(t, `INSERT INTO turns (id, bot, request_id, prompt, status, delivery) VALUES (1, 'Ada', 'r', '', 'queued', 'queue')`)
		return pictures{s, t}
	}
	one, two := noise(10_500), noise(2_000)
	shown := func(data []byte, hold int64) []ShownPicture {
		return []ShownPicture{{Hash: sha256.Sum256(data), Hold: hold, Path: "/p"}}
	}
	t.Run("a picture goes with the last of its holds", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		a, _ := s.hold(one)
		b, _ := s.hold(one)
		c, _ := s.hold(two)
		s.holds(one)
		s.wants(2, 3)
		s.drop(a)
		s.drop(a) // ended already
		s.wants(2, 2)
		s.drop(b)
		s.drop(c)
		s.wants(0, 0)
	})
	t.Run("a piece that an interrupted hold left is written whole by the next", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		row := &PictureRow{Hash: sha256.Sum256(one), MediaType: "image/png", Width: 1, Height: 1, Bytes: int64(len(one))}
		s.do(func(tx *Tx) error {
			_, there, err := tx.HoldPicture(row)
			if there {
				t.Error("it is there already")
			}
			return err
		})
		if _, there := s.hold(one); there {
			t.Error("the piece was taken for the picture")
		}
		s.holds(one)
	})
	t.Run("from a submission to its node", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		hold, _ := s.hold(one)
		s.do(func(tx *Tx) error { return tx.AddTurnPictures(1, shown(one, hold)) })
		s.wants(1, 0)
		if again, there := s.hold(one); !there {
			t.Error("what waits is not known")
		} else {
			s.drop(again)
		}
		s.do(func(tx *Tx) error {
			list, err := TurnPictures(tx.Conn(), 1)
			if err != nil || len(list) != 1 || list[0].Bytes != int64(len(one)) || list[0].MediaType != "image/png" || list[0].Path != "/p" {
				t.Errorf("%+v, %v", list, err)
			}
			node, err := tx.AppendNode(0, NewNode{Item: []byte("{}"), Pictures: list})
			if err != nil {
				return err
			}
			err = NodePictures(tx.Conn(), node, func(p PictureInfo) {
				if p.Path != "/p" || p.Refused || p.Bytes != int64(len(one)) {
					t.Errorf("%+v", p)
				}
			})
			if err != nil {
				return err
			}
			return tx.DropTurnPictures(1)
		})
		s.wants(1, 0)
		if n := s.count(t, "turn_pictures"); n != 0 {
			t.Errorf("%d rows of the submission stay", n)
		}
		s.holds(one)
	})
	t.Run("a submission that never runs takes its own along", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		a, _ := s.hold(one)
		b, _ := s.hold(two)
		s.do(func(tx *Tx) error {
			return tx.AddTurnPictures(1, append(shown(one, a), ShownPicture{Hash: sha256.Sum256(two), Hold: b}, ShownPicture{Hash: sha256.Sum256(two)}))
		})
		c, _ := s.hold(two)
		s.do(func(tx *Tx) error { return tx.DropTurnPictures(1) })
		s.wants(1, 1)
		s.drop(c)
		s.wants(0, 0)
	})
	t.Run("a hold that has ended cannot end again in a row", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		hold, _ := s.hold(one)
		s.drop(hold)
		s.hold(one)
		err := s.Do("test", func(tx *Tx) error { return tx.AddTurnPictures(1, shown(one, hold)) })
		wantCode(t, err, "store_row_invalid")
	})
	t.Run("RT-91 the next start ends the holds of the one before", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.hold(one)
		s.hold(one)
		s.hold(two)
		rounds := 0
		for found := true; found; rounds++ {
			s.do(func(tx *Tx) (err error) {
				found, err = tx.DropOldHold()
				return err
			})
		}
		if rounds != 4 {
			t.Errorf("%d rounds", rounds)
		}
		s.wants(0, 0)
	})
}
