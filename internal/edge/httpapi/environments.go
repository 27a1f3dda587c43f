package httpapi

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

const environmentsPath = "/v1/environments"

// environmentRoutes are for keys with the scope environments, also below
// /default, where the contract has them.
func (s *Server) environmentRoutes() (out []route) {
	for _, base := range []string{"", "/default"} {
		out = append(out,
			route{[]string{http.MethodGet, http.MethodHead, http.MethodPost}, base + environmentsPath, s.environments},
			route{[]string{http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodDelete}, base + environmentsPath + "/{environment}", s.environment})
	}
	return out
}

func (s *Server) environments(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeEnvironments)
	if err != nil {
		return err
	}
	if r.Method == http.MethodPost {
		return s.createOwnEnvironment(w, r, caller)
	}
	q, err := parseQuery(r, "limit", "page")
	if err != nil {
		return err
	}
	all, err := s.admin.Tenants.Environments(r.Context(), caller.Tenant.ID)
	if err != nil {
		return err
	}
	page, err := pageOf(q, all, func(e tenant.Environment) string { return e.ID }, ownEnvironmentWire)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page)
}

// spaces are what the contract's names have and an operator's cannot.
var spaces = regexp.MustCompile(` +`)

func (s *Server) createOwnEnvironment(w http.ResponseWriter, r *http.Request, caller *tenant.Principal) error {
	var in NewOwnEnvironment
	if err := readStrict(w, r, &in); err != nil {
		return err
	}
	if in.Name == nil {
		return invalid("name is required")
	}
	change, err := in.Config.domain(s.admin.Tenants.Limits())
	if err != nil {
		return err
	}
	if change.Template == nil {
		change.Template = new("")
	}
	e, err := s.admin.Tenants.CreateOwnEnvironment(r.Context(), caller.Tenant.ID, ownName(*in.Name), change)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, ownEnvironmentWire(e))
}

// ownName is a name in the form that names have here: "My Env" is My-Env.
func ownName(name string) string { return spaces.ReplaceAllString(strings.TrimSpace(name), "-") }

func (s *Server) environment(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeEnvironments)
	if err != nil {
		return err
	}
	if _, err := parseQuery(r); err != nil {
		return err
	}
	name := r.PathValue("environment")
	if !tenant.Name.MatchString(name) {
		return noEnvironment()
	}
	admin, ctx := s.admin.Tenants, r.Context()
	e, err := admin.Environment(ctx, caller.Tenant.ID, name)
	if fault.KindOf(err) == fault.NotFound && err != nil {
		return noEnvironment()
	}
	if err != nil {
		return err
	}
	switch r.Method {
	case http.MethodDelete:
		if err := admin.DeleteEnvironment(ctx, caller.Tenant.ID, e.ID); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	case http.MethodPatch:
		var in OwnEnvironmentChange
		if err := readStrict(w, r, &in); err != nil {
			return err
		}
		change, err := in.Config.domain(e.Limits)
		if err != nil {
			return err
		}
		if in.Name != nil {
			change.Name = new(ownName(*in.Name))
		}
		if e, err = admin.ChangeEnvironment(ctx, caller.Tenant.ID, e.ID, change); err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, ownEnvironmentWire(e))
}

func noEnvironment() error { return fault.New(fault.NotFound, "there is no such environment") }

// readStrict reads a request's body into a pointer to its wire type.
func readStrict(w http.ResponseWriter, r *http.Request, into any) error {
	if err := checkContentType(r.Header); err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	return wire.Body.Decode(body, into)
}
