package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// server is the side of a Node. It knows the contract by reflection: an argument or
// result that is neither a value nor one of the streams below fails.
type server struct {
	node sandbox.Node

	mu      sync.Mutex
	last    uint64                    // guarded by mu
	handles map[uint64]sandbox.Handle // guarded by mu
}

func newServer(n sandbox.Node) *server {
	return &server{node: n, handles: map[uint64]sandbox.Handle{}}
}

func (s *server) handle(id uint64) sandbox.Handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handles[id]
}

// session is one call.
type session struct {
	*link
	frames chan frame // from the caller
}

// serve answers one call. The caller going away ends the call's context.
func (s *server) serve(l *link) {
	defer l.conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var q request
	if l.dec.Decode(&q) != nil {
		return
	}
	c := &session{link: l, frames: make(chan frame)}
	go func() {
		defer cancel()
		defer close(c.frames)
		for {
			f, err := l.receive()
			if err != nil {
				return
			}
			select {
			case c.frames <- f:
			case <-ctx.Done():
				return
			}
		}
	}()
	results, err := s.do(ctx, c, q)
	a := frame{Answer: &answer{}, Err: encodeError(err)}
	var rest any // the stream that the answer goes on with
	if err == nil {
		for _, v := range results {
			switch v := v.(type) {
			case process.Output:
				rest = v
				a.Answer.Results = append(a.Answer.Results, raw(encoding.Marshal(v.Info())))
			case io.ReadCloser, file.Events, net.Conn:
				rest = v
			case sandbox.Handle:
				s.mu.Lock()
				s.last++
				s.handles[s.last] = v
				a.Answer.Results = append(a.Answer.Results, raw(encoding.Marshal(s.last)), raw(encoding.Marshal(v.Sandbox())))
				s.mu.Unlock()
			default:
				value, err := encoding.Marshal(v)
				if err != nil {
					a.Err = encodeError(fmt.Errorf("%s returns %T: %w", q.Method, v, err))
				}
				a.Answer.Results = append(a.Answer.Results, value)
			}
		}
	}
	err = l.send(a)
	switch v := rest.(type) {
	case process.Output:
		defer context.AfterFunc(ctx, func() { v.Close() })() // also while Next is under way
		c.output(v)
		v.Close()
	case net.Conn:
		defer context.AfterFunc(ctx, func() { v.Close() })()
		c.connected(v)
		v.Close()
	case io.ReadCloser:
		defer context.AfterFunc(ctx, func() { v.Close() })()
		c.reader(v)
		v.Close()
	case file.Events:
		defer context.AfterFunc(ctx, func() { v.Close() })()
		c.events(v)
		v.Close()
	default:
		_ = err // the caller has gone
	}
}

func raw(value cbor.RawMessage, err error) cbor.RawMessage {
	if err != nil {
		panic(err)
	}
	return value
}

// do makes the call that a request asks for.
func (s *server) do(ctx context.Context, c *session, q request) ([]any, error) {
	var target any = s.node
	if q.Part.Kind != "node" {
		h := s.handle(q.Part.Handle)
		if h == nil {
			return nil, errors.New("no such handle")
		}
		switch q.Part.Kind {
		case "guest":
			target = h.Guest()
		case "contexts":
			all, err := h.Contexts()
			if err != nil {
				return nil, err
			}
			target = all
		default:
			if results, done, err := s.special(ctx, h, q); done {
				return results, err
			}
			target = h
		}
	}
	method := reflect.ValueOf(target).MethodByName(q.Method)
	if !method.IsValid() {
		return nil, fmt.Errorf("no method %s", q.Method)
	}
	in, left := []reflect.Value{}, q.Args
	for i := range method.Type().NumIn() {
		want := method.Type().In(i)
		if want == reflect.TypeFor[context.Context]() {
			in = append(in, reflect.ValueOf(ctx))
			continue
		}
		v := reflect.New(want)
		switch want {
		case reflect.TypeFor[io.Reader]():
			v.Elem().Set(reflect.ValueOf(&pulled{c}))
		case reflect.TypeFor[codecontext.Sink]():
			v.Elem().Set(reflect.ValueOf(codecontext.Sink(c.sink)))
		case reflect.TypeFor[sandbox.Handle]():
			var id uint64
			if err := decoding.Unmarshal(left[0], &id); err != nil {
				return nil, err
			}
			v.Elem().Set(reflect.ValueOf(s.handle(id)))
		default:
			if err := decoding.Unmarshal(left[0], v.Interface()); err != nil {
				return nil, fmt.Errorf("%s takes %s: %w", q.Method, want, err)
			}
		}
		in, left = append(in, v.Elem()), left[1:]
	}
	var results []any
	var failed error
	for _, v := range method.Call(in) {
		if v.Type() == reflect.TypeFor[error]() {
			failed, _ = v.Interface().(error)
			continue
		}
		results = append(results, v.Interface())
	}
	return results, failed
}

// special does what of a Handle is neither a value nor a stream.
func (s *server) special(ctx context.Context, h sandbox.Handle, q request) (results []any, done bool, err error) {
	switch q.Method {
	case "Close":
		s.mu.Lock()
		delete(s.handles, q.Part.Handle)
		s.mu.Unlock()
		h.Close()
		return nil, true, nil
	case "Done":
		select {
		case <-h.Done():
			return nil, true, nil
		case <-ctx.Done():
			return nil, true, ctx.Err()
		}
	case "Contexts":
		_, err := h.Contexts()
		return nil, true, err
	case "Redactor":
		set, err := h.Redactor(ctx)
		if err != nil {
			return nil, true, err
		}
		return []any{set.Config()}, true, nil
	}
	return nil, false, nil
}

// ask has the caller do something.
func (c *session) ask(q frame) (frame, error) {
	if err := c.send(q); err != nil {
		return frame{}, err
	}
	f, ok := <-c.frames
	if !ok {
		return frame{}, context.Canceled
	}
	return f, f.Err.decode()
}

// pulled reads from the caller's reader.
type pulled struct{ c *session }

func (r *pulled) Read(p []byte) (int, error) {
	f, err := r.c.ask(frame{Read: len(p)})
	return copy(p, f.Data), err
}

// sink is the caller's.
func (c *session) sink(e codecontext.Event) error {
	_, err := c.ask(frame{Event: &e})
	return err
}

func (c *session) output(o process.Output) {
	for f := range c.frames {
		if f.Enough {
			o.Enough()
			continue
		}
		var a frame
		chunk, err := o.Next()
		if a.Err = encodeError(err); err == nil {
			a.Chunk = &chunk
		} else if errors.Is(err, io.EOF) {
			exit := o.Exit()
			a.Exit = &exit
		}
		if c.send(a) != nil {
			return
		}
	}
}

func (c *session) reader(r io.Reader) {
	buf := make([]byte, 64<<10)
	for f := range c.frames {
		n, err := r.Read(buf[:min(f.Read, len(buf))])
		a := frame{Data: buf[:n], Err: encodeError(err)}
		if packed, ok := r.(file.Archive); ok && err == io.EOF {
			counts := packed.Counts()
			a.Counts = &counts
		}
		if c.send(a) != nil {
			return
		}
	}
}

func (c *session) events(e file.Events) {
	for range c.frames {
		event, err := e.Next()
		if c.send(frame{Changed: &event, Err: encodeError(err)}) != nil {
			return
		}
	}
}

func (c *session) connected(conn net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			n, err := conn.Read(buf)
			if c.send(frame{Data: buf[:n], Err: encodeError(err)}) != nil || err != nil {
				return
			}
		}
	}()
	for f := range c.frames {
		if f.CloseWrite {
			_ = conn.(interface{ CloseWrite() error }).CloseWrite()
			continue
		}
		if _, err := conn.Write(f.Data); err != nil {
			break
		}
	}
	conn.Close()
	<-done
}
