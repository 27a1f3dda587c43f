package atoll

import (
	"context"
	"net/http"
)

const tokens = "/v1/tokens"

// CreateToken makes a short-lived token for a web page, which can do less than the client's key.
// The answer alone has the token itself.
func (c *Client) CreateToken(ctx context.Context, in NewToken) (Token, error) {
	return call[Token](ctx, c, http.MethodPost, tokens, nil, in)
}

// Tokens lists the tokens that the client's key has made, without the tokens themselves.
func (c *Client) Tokens() *Pager[Token] {
	return &Pager[Token]{c: c, path: tokens}
}

// DeleteToken ends a token that the client's key has made, by its id.
func (c *Client) DeleteToken(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, under(tokens, id), nil)
}
