// Package token serves tokens: what a key makes for a caller, such as a web page, that must
// not have the key.
package token

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/control/tokens"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve tokens.
type Handlers struct{ Service *tokens.Service }

// Operations are those of /v1/tokens.
func (h *Handlers) Operations() []httpapi.Operation {
	const all, one = "/v1/tokens", "/v1/tokens/{token_id}"
	ops := []httpapi.Operation{
		{
			Method: http.MethodPost, Path: all, ID: "createToken", Summary: "Make a short-lived token for a web page",
			Description: "The token can do less than the key that makes it, and stops with it. Give it to what must not have the key. A token cannot make tokens.",
			Body:        httpapi.JSON(NewToken{ExpiresIn: new(wire.Seconds(900)), Operations: &[]string{"runProgram", "getOutput"}, Origins: &[]string{"https://app.example.com"}, MaxExecutions: new(int64(20))}),
			Answers: []httpapi.Answer{
				httpapi.Created(Token{}, "It works at once. token is shown here alone."),
				httpapi.Refusal(http.StatusNotFound, "not_found: the session or sandbox does not exist, or belongs to another tenant."),
				httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: the key has the most tokens at a time."),
			},
			Serve: httpapi.Takes(h.create),
		},
		{
			Method: http.MethodGet, Path: all, ID: "listTokens", Summary: "List the key's living tokens, newest first", Description: "Lists the valid tokens that the calling key has created.", Params: httpapi.PageParams(20, 100),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Token]{}, "A page, without the tokens themselves.")}, Serve: httpapi.Returns(h.list),
		},
		{
			Method: http.MethodDelete, Path: one, ID: "deleteToken", Summary: "End a token at once", Description: "On other servers of the installation that takes up to 10 seconds. Atoll stops the work that the token started, and closes its streams.",
			Params: []httpapi.Param{{Name: "token_id", In: httpapi.InPath, Doc: "Id of a token of the key."}},
			Answers: []httpapi.Answer{
				httpapi.NoContent("It is refused from now on. Again is no error."),
				httpapi.Refusal(http.StatusNotFound, "not_found: the key has not created this token."),
			},
			Serve: httpapi.Does(h.delete),
		},
	}
	for i := range ops {
		ops[i].Tag, ops[i].Access = "tokens", httpapi.AnyKey
	}
	return ops
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[Token], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	page, next, err := h.Service.List(c.Context(), c.Caller, cursor, int(c.Int("limit")))
	return httpapi.Page[Token]{Data: httpapi.Each(page, tokenOf), NextPage: httpapi.OrNull(next)}, err
}

func (h *Handlers) delete(c *httpapi.Call) error {
	return h.Service.Revoke(c.Context(), c.Caller, c.Path("token_id"))
}

func (h *Handlers) create(c *httpapi.Call, in *NewToken) (out Token, err error) {
	ask := &tokens.New{
		Scopes: in.Scopes, Operations: in.Operations, Rights: in.Rights, Origins: in.Origins, MaxCost: in.MaxCost, MaxExecutions: in.MaxExecutions,
		Session: (*string)(in.Session), Sandbox: (*string)(in.Sandbox), SandboxSession: (*string)(in.SandboxSession),
	}
	if in.ExpiresIn != nil {
		ask.Life = new(in.ExpiresIn.Duration())
	}
	made, text, err := h.Service.Make(c.Context(), c.Caller, ask)
	if err != nil {
		return out, err
	}
	out = tokenOf(made)
	out.Token = text
	return out, nil
}
