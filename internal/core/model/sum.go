package model

// Plus returns the tokens of two answers together.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning, Estimated: u.Estimated + v.Estimated,
	}
}

// Plus returns the cost of two answers together.
func (c Cost) Plus(d Cost) Cost {
	return Cost{
		Input: c.Input.Plus(d.Input), Output: c.Output.Plus(d.Output),
		CacheRead: c.CacheRead.Plus(d.CacheRead), CacheWrite: c.CacheWrite.Plus(d.CacheWrite), Total: c.Total.Plus(d.Total),
	}
}
