package redact

import "io"

// Copy copies r to w without what must not be seen, and returns how many bytes it wrote.
func Copy(set *Set, w io.Writer, r io.Reader) (n int64, err error) {
	s := set.Stream(func(p []byte) {
		if err == nil {
			_, err = w.Write(p)
			n += int64(len(p))
		}
	})
	buf := make([]byte, 64<<10)
	for err == nil {
		k, readErr := r.Read(buf)
		s.Write(buf[:k])
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return n, readErr
		}
	}
	s.Flush()
	return n, err
}
