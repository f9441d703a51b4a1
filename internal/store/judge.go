package store

import (
	"encoding/binary"
	"fmt"

	"agent/protocol"
)

// applicationID names the product in a store's header: "Agnt".
const applicationID = 0x41676e74

// Sizes and offsets of SQLite's file header (https://www.sqlite.org/fileformat.html).
const (
	headerMagic    = "SQLite format 3\x00"
	headerBytes    = 100
	judgedBytes    = headerBytes + 8 // and the first page's b-tree header
	offPageSize    = 16
	offReadVersion = 19
	offFractions   = 21
	offUserVersion = 60
	offApplication = 68
	offTreeType    = 100
	offTreeCells   = 103
	leafTable      = 0x0d
	interiorTable  = 0x05
)

// judgeHeader gives the verdict on a file by its first bytes, at most
// judgedBytes of them, and its size: nil when SQLite may open it, else
// store_corrupt, store_schema_newer or store_schema_unsupported. An empty file
// is fine. It looks at bytes alone, so that a refusal changes none.
//
// A file that has no version yet passes only when it has no table either: the
// first commit may still be in the write-ahead log. checkVersion looks again
// once SQLite has read that.
func judgeHeader(head []byte, size int64, version int) error {
	if size == 0 {
		return nil
	}
	if err := judgeFormat(head, size); err != nil {
		return err
	}
	app := binary.BigEndian.Uint32(head[offApplication:])
	found := int32(binary.BigEndian.Uint32(head[offUserVersion:]))
	tables := head[offTreeType] != leafTable || binary.BigEndian.Uint16(head[offTreeCells:]) != 0
	return judgeVersion(int64(app), int64(found), tables, version)
}

// judgeFormat says whether the bytes are a SQLite file's.
func judgeFormat(head []byte, size int64) error {
	if len(head) < judgedBytes || string(head[:len(headerMagic)]) != headerMagic {
		return corrupt("the file's header is not a SQLite database's")
	}
	page := int64(binary.BigEndian.Uint16(head[offPageSize:]))
	if page == 1 {
		page = 65536
	}
	if page < 512 || page&(page-1) != 0 {
		return corrupt("the file's header names an impossible page size")
	}
	if size < page {
		return corrupt("the file is cut short")
	}
	if v := head[offReadVersion]; v != 1 && v != 2 {
		return corrupt("the file's header names an unknown format")
	}
	if head[offFractions] != 64 || head[offFractions+1] != 32 || head[offFractions+2] != 32 {
		return corrupt("the file's header is damaged")
	}
	if t := head[offTreeType]; t != leafTable && t != interiorTable {
		return corrupt("the file's first page is damaged")
	}
	return nil
}

// judgeVersion compares what a file says it is with what this program reads.
func judgeVersion(app, found int64, tables bool, version int) error {
	switch {
	case app == 0 && found == 0 && !tables:
		return nil
	case app != applicationID:
		return protocol.Fail(protocol.StoreSchemaUnsupported,
			"the file is a SQLite database but not a store of this product; name another with --store")
	case found < 1:
		return protocol.Fail(protocol.StoreSchemaUnsupported, "the store has no schema version")
	case found > int64(version):
		return protocol.Fail(protocol.StoreSchemaNewer, fmt.Sprintf(
			"the store has schema version %d and this program reads up to %d; use a newer program", found, version))
	}
	return nil
}

func corrupt(what string) *protocol.Error {
	return protocol.Fail(protocol.StoreCorrupt, what+"; nothing was changed: restore the store from a copy, or name another with --store")
}
