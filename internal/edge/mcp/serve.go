package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/control/mcpsession"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

const (
	sessionHeader  = "Mcp-Session-Id"
	versionHeader  = "Mcp-Protocol-Version"
	methodHeader   = "Mcp-Method"
	listenMethod   = "subscriptions/listen" // waits for news, of which we have none
	withoutSession = "2026-07-28"           // from this version of the protocol on, there are no sessions
)

// request is what a call needs to know of the HTTP request that brought it.
type request struct {
	mcpsession.Place

	session *mcpsession.Session // nil without one
	server  *mcp.Server         // of a session that is being opened
	life    context.Context     // calls end with it
	message *message
	limit   int     // bytes of an event
	out     *answer // being given
}

const requestKey = "atoll"

type contextKey struct{}

func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(contextKey{}).(*request)
	return r
}

// serverOf gives the SDK the server of a request: the session's own while that
// is opened, otherwise one that all share.
func (s *Server) serverOf(r *http.Request) *mcp.Server {
	req := requestOf(r.Context())
	if req.server != nil {
		return req.server
	}
	return s.shared[accessOf(req.Caller)][req.Named]
}

func accessOf(p *tenant.Principal) access {
	return access{p.May(tenant.ScopeTools), p.May(tenant.ScopeExecute)}
}

// Serve answers one request for p, whose body has been read. An error is to be
// answered by the caller; nothing is written then. Its method MessageID says which message
// was refused.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, body []byte, p *tenant.Principal) error {
	if _, err := wire.Weigh("the message", body); err != nil {
		return &refused{err, null}
	}
	m := readMessage(r, body)
	if err := s.serve(w, r, body, m, p); err != nil {
		return &refused{err, m.id}
	}
	return nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, body []byte, m *message, p *tenant.Principal) error {
	if err := s.checkSource(r); err != nil {
		return err
	}
	if a := accessOf(p); !a.tools && !a.execute {
		return fault.New(fault.Forbidden, "this key lacks the scopes %q and %q; one of them is needed here", tenant.ScopeTools, tenant.ScopeExecute)
	}
	at, stateless, err := parseQuery(r.URL, p)
	if err != nil {
		return err
	}
	req := &request{Place: at, message: m}
	if req.limit, err = eventBound(r.Header); err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	id := r.Header.Get(sessionHeader)
	switch {
	case stateless, m.version >= withoutSession, id == "" && m.isPost && m.method != "initialize":
		return s.serveStateless(w, r, req)
	case id != "":
		return s.serveSession(w, r, id, req)
	case m.isPost:
		return s.serveOpening(w, r, req)
	}
	return fault.New(fault.Invalid, "%s is required: the answer to initialize has it", sessionHeader)
}

// parseQuery reads what the URL says of every call.
func parseQuery(u *url.URL, p *tenant.Principal) (at mcpsession.Place, stateless bool, err error) {
	at.Caller = p
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return at, false, fault.Wrap(fault.Invalid, err, "the query of the URL cannot be read")
	}
	for name, values := range q {
		if len(values) > 1 {
			return at, false, fault.New(fault.Invalid, "%.40q is given twice in the URL", name)
		}
		switch value := values[0]; name {
		case "session":
			at.Pool, at.Named = value, true
			if err := sandbox.CheckSession(value); err != nil {
				return at, false, err
			}
		case "stateless":
			if value != "true" && value != "false" {
				return at, false, fault.New(fault.Invalid, "stateless must be true or false")
			}
			stateless = value == "true"
		case "agent":
			at.Agent = value
			if err := tools.CheckAgent(value); err != nil {
				return at, false, err
			}
		case "template":
			at.Template = value
			if err := tools.CheckTemplate(value); err != nil {
				return at, false, err
			}
		default:
			return at, false, fault.New(fault.Invalid, "unknown parameter %.40q in the URL; there are session, stateless, agent, template", name)
		}
	}
	return at, stateless, nil
}

// answer has the SDK answer a request.
func (req *request) answer(ctx context.Context, h http.Handler, w http.ResponseWriter, r *http.Request) {
	req.out = newAnswer(w, req)
	defer req.out.end()
	h.ServeHTTP(req.out, r.WithContext(context.WithValue(ctx, contextKey{}, req)))
}

// serveStateless answers a request that stands by itself. Without a name, the
// sandboxes are those of the key.
func (s *Server) serveStateless(w http.ResponseWriter, r *http.Request, req *request) error {
	if !req.Named {
		req.Pool = "mcp-" + req.Caller.Key.ID
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if strings.EqualFold(r.Header.Get(methodHeader), listenMethod) {
		end, err := s.cfg.OpenStream(req.Caller)
		if err != nil {
			return err
		}
		defer end()
		defer context.AfterFunc(s.drain, cancel)()
	}
	req.life = ctx
	req.answer(ctx, s.stateless, w, r)
	return nil
}

// serveOpening opens a session. A client whose connection breaks meanwhile can ask
// for the answer again, as for every other; by the request's own context the SDK
// would take the session back.
func (s *Server) serveOpening(w http.ResponseWriter, r *http.Request, req *request) error {
	one, err := s.sessions.Open(req.Place, s.serverFor)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(one.Life, cancel)()
	req.Place, req.session, req.server, req.life = one.Place, one, one.Server, one.Life
	req.answer(ctx, s.stateful, w, r)
	if !one.Connected() { // the SDK refused the request
		one.Close()
		s.sessions.Forget(one.ID)
	}
	return nil
}

// serveSession answers a request within a session.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request, id string, req *request) error {
	p := req.Caller
	one := s.sessions.Find(id, p)
	if one == nil { // or another's, which is the same to the caller
		return fault.New(fault.NotFound, "session not found or expired; open a new one with initialize")
	}
	if r.Method == http.MethodDelete {
		if err := s.sessions.End(r.Context(), one, p); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	req.Place, req.session, req.life = one.Place, one, one.Life
	req.Caller = p // as it is now
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if r.Method == http.MethodGet {
		end, err := s.cfg.OpenStream(p)
		if err != nil {
			return err
		}
		defer end()
		defer context.AfterFunc(s.drain, cancel)()
	}
	req.answer(ctx, s.stateful, w, r)
	return nil
}
