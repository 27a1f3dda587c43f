package sandboxtest

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Rig is an implementation of sandbox.Node that Contract tests.
type Rig struct {
	Node sandbox.Node
	// Machine is the implementation on the machine itself, which alone lists and deletes orphans.
	Machine sandbox.Node
	// Caller returns a caller with a tenant, an environment and a valid key of its own, as
	// change has made them. Its sandboxes have the tests' image and no network. Of one name
	// there is one caller at a time: a second one takes the place of the first.
	Caller func(name string, change ...func(*tenant.Principal)) *tenant.Principal
	// Image is an alias of the tests' image, by which that can be asked for too.
	Image string
	// Elsewhere records a sandbox as one of another machine. Nil skips the tests of such sandboxes.
	Elsewhere func(t *testing.T, sb *sandbox.Sandbox, executor string)
}

// Contract is what every sandbox.Node has to do, with its Handles and what they lead to.
func Contract(t *testing.T, r Rig) {
	for _, part := range []struct {
		name string
		test func(*suite)
	}{
		{"lifecycle", testLifecycle},
		{"processes", testProcesses},
		{"files", testFiles},
		{"ports", testPorts},
		{"contexts", testContexts},
		{"use", testUse},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(&suite{T: t, Rig: r}) })
	}
}

// suite is one part of Contract.
type suite struct {
	*testing.T
	Rig
}

// group runs tests that share a sandbox.
func (s *suite) group(h sandbox.Handle, tests []groupTest) {
	for _, test := range tests {
		s.Run(test.name, func(t *testing.T) { test.run(&use{t, h.Guest(), h}) })
	}
}

type groupTest struct {
	name string
	run  func(*use)
}

// caller is the grant of Rig.Caller, with names of this part's own.
func (s *suite) caller(name string, change ...func(*tenant.Principal)) *sandbox.Grant {
	return sandbox.GrantOf(s.Caller("contract-"+name, change...))
}

// make returns a sandbox of grant's session "s" that was not there before.
func (s *suite) make(grant *sandbox.Grant, name string, spec *sandbox.Spec) *sandbox.Sandbox {
	s.Helper()
	if spec == nil {
		spec = &sandbox.Spec{}
	}
	sb, created, err := s.Node.Ensure(s.Context(), grant, "s", name, spec)
	if err != nil || !created {
		s.Fatalf("create %s: %v, created %v", name, err, created)
	}
	return sb
}

// open begins a use of grant's sandbox that ends with the test.
func (s *suite) open(grant *sandbox.Grant, name string) sandbox.Handle {
	s.Helper()
	h, err := s.Node.Use(s.Context(), grant, "s", name)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(h.Close)
	return h
}

// shell runs a command in grant's sandbox and returns what it wrote.
func (s *suite) shell(grant *sandbox.Grant, name, command string) string {
	s.Helper()
	h, err := s.Node.Use(s.Context(), grant, "s", name)
	if err != nil {
		s.Fatal(err)
	}
	defer h.Close()
	return (&use{s.T, h.Guest(), h}).shell(command)
}

// destroy ends grant's sandboxes at the end of a part, so that parts do not add up.
func (s *suite) destroy(grant *sandbox.Grant) {
	s.Cleanup(func() {
		ctx := context.WithoutCancel(s.Context())
		all, err := s.Node.List(ctx, grant, "")
		if err != nil {
			s.Error(err)
		}
		for _, sb := range all {
			if _, err := s.Node.Destroy(ctx, grant, sb.Session, sb.Name); err != nil {
				s.Error(err)
			}
		}
	})
}

// use is a test of what is in a sandbox.
type use struct {
	*testing.T
	sandbox.Guest
	h sandbox.Handle
}

// output is all that a process put out.
type output struct {
	text    [4]string // by process.Stream
	dropped int64
	exit    process.Exit
}

// rest reads an output to its end.
func (u *use) rest(o process.Output) (out output) {
	u.Helper()
	defer o.Close()
	var text [4]strings.Builder
	defer func() {
		for i := range text {
			out.text[i] = text[i].String()
		}
	}()
	for {
		c, err := o.Next()
		if errors.Is(err, io.EOF) {
			out.exit = o.Exit()
			return out
		}
		if err != nil {
			u.Fatalf("%v, after %d bytes of stdout", err, text[process.Stdout].Len())
		}
		text[c.Stream].Write(c.Data)
		out.dropped += c.Dropped
	}
}

// until reads an output until it has said a text, and returns where it was then.
func (u *use) until(o process.Output, text string) (said string, at process.Seq) {
	u.Helper()
	for {
		c, err := o.Next()
		if err != nil {
			u.Fatalf("%v, before %q, after %.2000q", err, text, said)
		}
		said, at = said+string(c.Data), c.Seq
		if strings.Contains(said, text) {
			return said, at
		}
	}
}

// run runs a process to its end.
func (u *use) run(spec process.Spec) output {
	u.Helper()
	o, err := u.Guest.Run(u.Context(), spec)
	if err != nil {
		u.Fatal(err)
	}
	return u.rest(o)
}

// shell runs a command that succeeds, and returns what it wrote.
func (u *use) shell(command string) string {
	u.Helper()
	out := u.run(process.Spec{Shell: command, Timeout: time.Minute})
	if out.exit.Code != 0 {
		u.Fatalf("%s: %+v: %s", command, out.exit, out.text)
	}
	return strings.TrimSpace(out.text[process.Stdout])
}

func (u *use) start(spec process.Spec) process.Info {
	u.Helper()
	p, err := u.Start(u.Context(), spec)
	if err != nil {
		u.Fatal(err)
	}
	return p
}

func (u *use) follow(id process.ID, after process.Seq) process.Output {
	u.Helper()
	o, err := u.Follow(u.Context(), id, after)
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(func() { o.Close() })
	return o
}

// refused checks an error that callers are told.
func refused(t *testing.T, what string, err error, kind fault.Kind, says string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: got the error %v of kind %d, want one of kind %d with %q", what, err, fault.KindOf(err), kind, says)
	}
}

// eventually waits for something that nothing tells of.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 30 s: %s", what)
		}
	}
}

func equal(t *testing.T, what string, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %.300q, want %.300q", what, got, want)
	}
}

func equalList(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
