package outbox

import (
	"context"
	"errors"
	"fmt"
	"os"

	"agent/internal/place"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/beside"
	"agent/internal/sonny/screen/edit"
	"agent/protocol"
)

// CleanPictures takes away what was attached long ago, and what a crash left of an edit.
func (o *Outbox) CleanPictures() {
	now := o.now()
	scratch := pen.Scratch(o.kept)
	beside.Do(o.screen, func(context.Context) (struct{}, error) {
		return struct{}{}, errors.Join(o.pictures.Clean(now), place.SweepScratch(scratch))
	},
		func(_ struct{}, err error) { o.failing(err) })
}

// Attach puts pictures into what is being written, each as a chip. instead is done where
// the first is no file; nil says so.
func (o *Outbox) Attach(b *Box, paths []string, instead func()) {
	o.attach(b, len(paths), func(context.Context) (list []*pen.Picture, err error) {
		for _, path := range paths {
			p, err := o.pictures.Attach(path)
			if err != nil {
				return list, err
			}
			list = append(list, p)
		}
		return list, nil
	}, func(list []*pen.Picture, err error) {
		if err != nil && os.IsNotExist(err) && instead != nil && len(list) == 0 {
			instead()
			return
		}
		o.failing(err)
	})
}

// AttachFrom puts the picture into what is being written that read gives, beside the loop.
// from says where it is from.
func (o *Outbox) AttachFrom(b *Box, from string, read func(context.Context) ([]byte, error)) {
	o.attach(b, 1, func(ctx context.Context) ([]*pen.Picture, error) {
		data, err := read(ctx)
		if err != nil {
			return nil, err
		}
		p, err := o.pictures.AttachBytes(data, from)
		if err != nil {
			return nil, err
		}
		return []*pen.Picture{p}, nil
	}, func(_ []*pen.Picture, err error) { o.failing(err) })
}

// attach adds up to n pictures. Until they are there no message goes out without them.
func (o *Outbox) attach(b *Box, n int, read func(context.Context) ([]*pen.Picture, error), done func([]*pen.Picture, error)) {
	_, pictures := b.Editor().Draft().Message()
	if len(pictures)+b.reading+n > protocol.MaxPictures {
		o.screen.Say(fmt.Sprintf("a message holds at most %d pictures", protocol.MaxPictures))
		return
	}
	b.reading += n
	beside.Do(o.screen, read, func(list []*pen.Picture, err error) {
		b.reading -= n
		b.add(list)
		done(list, err)
	})
}

// add puts pictures at the caret.
func (b *Box) add(list []*pen.Picture) {
	for _, p := range list {
		_, there := b.Editor().Draft().Message()
		b.Editor().AddChip(edit.Chip{Kind: edit.PictureChip, Label: p.Label(len(there) + 1), Path: p.Path})
	}
}
