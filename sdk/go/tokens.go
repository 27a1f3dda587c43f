package atoll

import (
	"context"
	"net/http"
)

const tokens = "/v1/tokens"

// CreateToken creates a short-lived token for a web page, with fewer rights than the client's key.
// Only the answer contains the token itself.
func (c *Client) CreateToken(ctx context.Context, in NewToken) (Token, error) {
	return call[Token](ctx, c, http.MethodPost, tokens, nil, in)
}

// Tokens lists the tokens that the client's key created, without their secrets.
func (c *Client) Tokens() *Pager[Token] {
	return &Pager[Token]{c: c, path: tokens}
}

// DeleteToken revokes a token that the client's key created, by its id.
func (c *Client) DeleteToken(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, under(tokens, id), nil)
}
