package model

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/usage"
)

// Price is the price of a million tokens, in millionths of a US dollar.
type Price int64

// MaxPrice is 10,000 dollars per million tokens.
const MaxPrice Price = 10_000_000_000

// priceDigits is the number of decimal places of a Price.
const priceDigits = 6

// ParsePrice parses a decimal number of dollars, such as 2.50, exactly.
func ParsePrice(text string) (Price, error) {
	whole, fraction, point := strings.Cut(text, ".")
	bad := fmt.Errorf("%q is not a price: want US dollars per million tokens, such as 2.50, with at most %d decimal places and at most %d dollars", text, priceDigits, MaxPrice/1e6)
	if !digits(whole) || point && !digits(fraction) || len(fraction) > priceDigits {
		return 0, bad
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", priceDigits-len(fraction)), 10, 64)
	if err != nil || Price(n) > MaxPrice {
		return 0, bad
	}
	return Price(n), nil
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// String formats the price in dollars, as ParsePrice reads it.
func (p Price) String() string { return usage.Decimal(int64(p), priceDigits) }

// Money is an amount of money. One token at any Price is a whole number of its units.
type Money = usage.Money

// Prices are the prices of a model's tokens.
type Prices struct {
	Input, Output Price
	// CacheRead and CacheWrite apply to input tokens that the provider read from, or wrote to, its
	// cache.
	CacheRead, CacheWrite Price
}

// Cost is the cost of an answer.
type Cost struct{ Input, Output, CacheRead, CacheWrite, Total Money }

// MaxTokens is the largest valid token count in a Usage.
const MaxTokens = 100_000_000

// Cost returns the cost of u.
func (p Prices) Cost(u Usage) Cost {
	c := Cost{
		Input:  times(max(0, u.Input-u.CacheRead-u.CacheWrite), p.Input),
		Output: times(u.Output, p.Output), CacheRead: times(u.CacheRead, p.CacheRead), CacheWrite: times(u.CacheWrite, p.CacheWrite),
	}
	c.Total = c.Input + c.Output + c.CacheRead + c.CacheWrite
	return c
}

// times is exact: MaxTokens at MaxPrice is a tenth of the largest Money.
func times(tokens int64, p Price) Money {
	return Money(min(max(tokens, 0), MaxTokens)) * Money(p)
}

// Sound normalizes u: some providers count reasoning outside the output, or cached tokens outside
// the input. ok is false if a count is negative or above MaxTokens.
func (u Usage) Sound() (_ Usage, ok bool) {
	for _, n := range []int64{u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning} {
		if n < 0 || n > MaxTokens {
			return Usage{}, false
		}
	}
	if cached := u.CacheRead + u.CacheWrite; cached > u.Input {
		u.Input += cached
	}
	if u.Reasoning > u.Output {
		u.Output += u.Reasoning
	}
	return u, true
}
