package httpapi

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// outputPiece is how much output is made JSON at a time: an encoder keeps a
// whole string, and a byte of output may become six.
const outputPiece = 32 << 10

// writeResult writes body as JSON with the outputs of result, which it holds. It
// takes memory for a piece of them only.
func writeResult(w io.Writer, body any, result *ExecuteResponse) error {
	stdout, stderr := result.Stdout, result.Stderr
	result.Stdout, result.Stderr = "", ""
	defer func() { result.Stdout, result.Stderr = stdout, stderr }()
	frame, err := json.Marshal(body, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	// Nothing that callers or programs choose stands before these two.
	for _, part := range []struct{ name, text string }{{`"stdout":"`, stdout}, {`"stderr":"`, stderr}} {
		before, after, _ := bytes.Cut(frame, []byte(part.name))
		if _, err := w.Write(append(before, part.name...)); err != nil {
			return err
		}
		if err := writeText(w, part.text); err != nil {
			return err
		}
		frame = after
	}
	_, err = w.Write(frame)
	return err
}

// writeText writes the inside of a JSON string.
func writeText(w io.Writer, text string) error {
	var quoted []byte
	for len(text) > 0 {
		piece := text[:min(len(text), outputPiece)]
		if len(piece) < len(text) {
			piece = piece[:wholeRunes([]byte(piece))]
		}
		text = text[len(piece):]
		// Its error says that bytes were replaced, as they should be.
		quoted, _ = jsontext.AppendQuote(quoted[:0], piece)
		if _, err := w.Write(quoted[1 : len(quoted)-1]); err != nil {
			return err
		}
	}
	return nil
}
