package usage

import (
	"fmt"
	"math"
	"strings"
)

// Money is an amount in units of 1e-12 US dollars. One token costs a whole number of units, so sums
// are exact.
type Money int64

// moneyDigits is the number of decimal places of Money.
const moneyDigits = 12

// MoneyOf converts dollars to Money, rounded to the nearest unit and capped at the largest Money.
func MoneyOf(dollars float64) Money {
	if dollars >= math.MaxInt64/1e12 {
		return math.MaxInt64
	}
	return Money(math.Round(dollars * 1e12))
}

// String formats the amount in dollars, exactly.
func (m Money) String() string { return Decimal(int64(m), moneyDigits) }

// Dollars returns the amount as a float, which may be off in its sixteenth digit, for APIs that use
// numbers.
func (m Money) Dollars() float64 { return float64(m) / 1e12 }

// Plus returns the sum, capped at the largest Money, because a provider may report any number of
// tokens.
func (m Money) Plus(n Money) Money {
	if sum := m + n; sum >= m || n < 0 {
		return sum
	}
	return math.MaxInt64
}

// Times returns n times the amount, capped like Plus.
func (m Money) Times(n int) Money {
	if n > 0 && m > math.MaxInt64/Money(n) {
		return math.MaxInt64
	}
	return m * Money(n)
}

// Decimal formats n with its last after digits as decimal places, without trailing zeros.
func Decimal(n int64, after int) string {
	text := fmt.Sprintf("%0*d", after+1, n)
	whole, fraction := text[:len(text)-after], strings.TrimRight(text[len(text)-after:], "0")
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}
