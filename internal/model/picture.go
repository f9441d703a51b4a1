package model

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
)

// picturePrefix starts a placeholder. An at sign is no base64 character, so no
// stored base64 can be taken for one.
const picturePrefix = "@picture:"

// PlaceholderLen is the length of every placeholder.
const PlaceholderLen = len(picturePrefix) + 64

// Placeholder is what stands in a stored item for the base64 of a picture. It
// needs no JSON escaping.
func (p Picture) Placeholder() string {
	return picturePrefix + hex.EncodeToString(p.Hash[:])
}

// Base64Len is the length of the text that replaces the placeholder.
func (p Picture) Base64Len() int64 {
	return int64(base64.StdEncoding.EncodedLen(int(p.Bytes)))
}

// AppendBeside appends text as a JSON string of an item that holds pictures.
// What looks like a placeholder in it, copied from another item perhaps, is
// written so that only a reader of the JSON sees it.
func AppendBeside(b []byte, text string) []byte {
	from := len(b)
	b = AppendString(b, text)
	if !bytes.Contains(b[from:], []byte(picturePrefix)) {
		return b
	}
	hidden := bytes.ReplaceAll(b[from:], []byte(picturePrefix), []byte(`\u0040`+picturePrefix[1:]))
	return append(b[:from], hidden...)
}

// FindPlaceholder gives the place and hash of the first placeholder in item,
// or -1. Only items that show pictures are searched, whose texts AppendBeside
// wrote: the same text in another item is only text.
func FindPlaceholder(item []byte) (at int, hash [32]byte) {
	for from := 0; ; {
		i := bytes.Index(item[from:], []byte(picturePrefix))
		if i < 0 {
			return -1, hash
		}
		i += from
		end := i + PlaceholderLen
		if end <= len(item) {
			if _, err := hex.Decode(hash[:], item[i+len(picturePrefix):end]); err == nil {
				return i, hash
			}
		}
		from = i + len(picturePrefix)
	}
}
