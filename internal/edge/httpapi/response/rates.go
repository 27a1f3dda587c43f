package response

import (
	"net/http"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// admit holds the caller of a response to the budget of its tenant and to the rates of its
// plan, of a model.
func (h *Handlers) admit(c *httpapi.Call, model string) error {
	if h.Rates != nil {
		err := h.Rates.Begin(c.Caller, model)
		h.tellRates(c.W.Header(), c.Caller, model)
		if err != nil {
			c.RateLimited(err)
			return err
		}
	}
	if h.Budget == nil || c.Caller.Tenant.MonthlyCost <= 0 {
		return nil
	}
	return h.Budget(c.Context(), c.Caller.Tenant.ID, 0)
}

// tellRates sets the headers of an answer that say what is left of the rates of a model.
func (h *Handlers) tellRates(to http.Header, p *tenant.Principal, model string) {
	if h.Rates == nil {
		return
	}
	left := h.Rates.Left(p, model)
	for what, r := range map[string]ratelimit.Rate{"requests": left.Responses, "tokens": left.Tokens} {
		if r.Limit == 0 {
			continue
		}
		to.Set("x-ratelimit-limit-"+what, strconv.FormatInt(r.Limit, 10))
		to.Set("x-ratelimit-remaining-"+what, strconv.FormatInt(r.Remaining, 10))
		to.Set("x-ratelimit-reset-"+what, r.Reset.Round(time.Millisecond).String())
	}
}

// rateHeaders documents what tellRates sets.
func rateHeaders() (all []httpapi.Param) {
	for _, what := range [][2]string{{"requests", "Responses"}, {"tokens", "Tokens"}} {
		all = append(all,
			httpapi.Param{Name: "x-ratelimit-limit-" + what[0], Type: httpapi.Int, Doc: what[1] + " a minute that the plan gives the key or its tenant, of this model. Without a bound there is no such header."},
			httpapi.Param{Name: "x-ratelimit-remaining-" + what[0], Type: httpapi.Int, Doc: what[1] + " that are left now."},
			httpapi.Param{Name: "x-ratelimit-reset-" + what[0], Doc: "Until all are there again, such as 350ms, 1s and 6m0s.", Pattern: "^([0-9]+m)?([0-9.]+(s|ms))$"},
		)
	}
	return all
}
