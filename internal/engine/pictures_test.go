package engine

import "testing"

func TestSaysTextOnly(t *testing.T) {
	for text, textOnly := range map[string]bool{
		"This model does not support image input.": true,
		"Model m doesn't support images":           true,
		"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj": true,
		"Invalid content type. image_url is only supported by certain models.":                           true,
		"No endpoints found that support image input":                                                    true,
		"At most 0 image(s) may be provided in one request.":                                             true,
		"m is not a multimodal model":                                                                    true,
		"This model cannot accept pictures":                                                              true,
		"Could not process image":                                                                        false,
		"messages.3.content.1.image.source.base64: the image cannot be processed":                        false,
		"At most 20 images may be provided in one request":                                               false,
		"You uploaded an unsupported image. Please make sure your image is valid.":                       false,
		"The image format image/gif is not supported for animated pictures":                              false,
		"image exceeds 5 MB maximum":                                                                     false,
	} {
		if got := saysTextOnly.MatchString(text); got != textOnly {
			t.Errorf("%q: %v", text, got)
		}
	}
}
