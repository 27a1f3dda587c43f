package model

import (
	"net/url"
	"strings"
)

// Citation says which page a part of a text cites, as the provider reported it. Atoll creates no
// citations.
type Citation struct {
	URL        string
	Title      string
	Start, End int // characters of the text, [Start, End)
}

// Limits of citations.
const (
	maxCitationURL   = 4096
	maxCitationTitle = 1000 // bytes
	maxCitationEnd   = 1 << 30
)

// Sound returns the citation with a valid title of limited length. ok is false if its URL or range
// is invalid.
func (c Citation) Sound() (_ Citation, ok bool) {
	u, err := url.Parse(c.URL)
	if err != nil || len(c.URL) > maxCitationURL || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return c, false
	}
	if c.Start < 0 || c.End < c.Start || c.End > maxCitationEnd {
		return c, false
	}
	c.Title = strings.ToValidUTF8(c.Title, "\uFFFD")
	if len(c.Title) > maxCitationTitle {
		c.Title = strings.ToValidUTF8(c.Title[:maxCitationTitle], "")
	}
	return c, true
}

// citationBytes is the size of a citation in addition to its texts.
const citationBytes = 64

func (c *Citation) size() int {
	if c == nil {
		return 0
	}
	return len(c.URL) + len(c.Title) + citationBytes
}
