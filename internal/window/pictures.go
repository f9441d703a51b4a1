package window

// What a request carries of pictures at most (runtime.md 19). Leaving one out
// starts a new cached prefix there, so that moves in steps.
const (
	maxPictures     = 16
	maxPictureBytes = 20 << 20 // of base64
	pictureStep     = 4
)

// PicturesOut is how many of the oldest pictures are left out of a request.
// sizes are the pictures' base64, oldest first; the last fresh ones the model
// has not met yet, and none of them goes for the step's sake alone.
func PicturesOut(sizes []int64, fresh int) int {
	need, room := len(sizes), int64(maxPictureBytes)
	for need > 0 && len(sizes)-need < maxPictures && sizes[need-1] <= room {
		need--
		room -= sizes[need]
	}
	step := (need + pictureStep - 1) / pictureStep * pictureStep
	return max(need, min(step, len(sizes)-fresh))
}
