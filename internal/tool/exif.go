package tool

import (
	"bytes"
	"encoding/binary"
)

// orientation is a JPEG's Exif orientation, 1 to 8, or 0 where it tells none
// that makes sense. It runs in the picture child.
func orientation(jpeg []byte) int {
	exif := exifOf(jpeg)
	if len(exif) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	if string(exif[:2]) == "MM" {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(exif[4:])) // of the first directory
	if at+2 > int64(len(exif)) {
		return 0
	}
	entries := exif[at+2:]
	for range order.Uint16(exif[at:]) {
		if len(entries) < 12 {
			return 0
		}
		const tagOrientation, typeShort = 0x112, 3
		if order.Uint16(entries) == tagOrientation && order.Uint16(entries[2:]) == typeShort {
			if o := int(order.Uint16(entries[8:])); o >= 1 && o <= 8 {
				return o
			}
			return 0
		}
		entries = entries[12:]
	}
	return 0
}

// exifOf is the TIFF structure in a JPEG's Exif segment, nil without one.
func exifOf(jpeg []byte) []byte {
	const startOfScan, app1 = 0xda, 0xe1
	for at := 2; at+4 <= len(jpeg) && jpeg[at] == 0xff; {
		marker, size := jpeg[at+1], int(binary.BigEndian.Uint16(jpeg[at+2:]))
		if marker == startOfScan || size < 2 || at+2+size > len(jpeg) {
			return nil
		}
		if exif, ok := bytes.CutPrefix(jpeg[at+4:at+2+size], []byte("Exif\x00\x00")); ok && marker == app1 {
			return exif
		}
		at += 2 + size
	}
	return nil
}
