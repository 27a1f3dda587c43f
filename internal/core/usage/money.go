package usage

import (
	"fmt"
	"math"
	"strings"
)

// Money is an amount in millionths of a millionth of a US dollar: what a token costs is a
// whole number of them, so that sums are exact.
type Money int64

// moneyDigits are those after the point that Money has.
const moneyDigits = 12

// MoneyOf is an amount in dollars as Money has it, to its last digit; at most all that
// Money holds.
func MoneyOf(dollars float64) Money {
	if dollars >= math.MaxInt64/1e12 {
		return math.MaxInt64
	}
	return Money(math.Round(dollars * 1e12))
}

// String is an amount in dollars with all its digits.
func (m Money) String() string { return Decimal(int64(m), moneyDigits) }

// Dollars is an amount as a number that may be off in its sixteenth digit, for APIs that
// have numbers there.
func (m Money) Dollars() float64 { return float64(m) / 1e12 }

// Plus returns two amounts together, at most all that Money holds: a provider may say any
// number of tokens.
func (m Money) Plus(n Money) Money {
	if sum := m + n; sum >= m || n < 0 {
		return sum
	}
	return math.MaxInt64
}

// Times returns an amount n times, likewise.
func (m Money) Times(n int) Money {
	if n > 0 && m > math.MaxInt64/Money(n) {
		return math.MaxInt64
	}
	return m * Money(n)
}

// Decimal writes n with its last so many digits after a point, without zeros at the end.
func Decimal(n int64, after int) string {
	text := fmt.Sprintf("%0*d", after+1, n)
	whole, fraction := text[:len(text)-after], strings.TrimRight(text[len(text)-after:], "0")
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}
