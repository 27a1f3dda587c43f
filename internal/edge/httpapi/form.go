package httpapi

import (
	"errors"
	"io"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// BadForm says of a form in multipart/form-data that it is none, unless something else is known.
func BadForm(err error) error { return BadBody(err, "the body is not multipart/form-data") }

// BadBody says of a body that it is not what it says, unless something else is known.
func BadBody(err error, otherwise string) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	if p, ok := errors.AsType[*ProtocolError](err); ok {
		return p
	}
	return fault.Wrap(fault.Invalid, err, otherwise)
}

// FormContent is a part of a form that says what is wrong with a form which does not end as one.
type FormContent struct{ io.Reader }

func (f FormContent) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = BadForm(err)
	}
	return n, err
}
