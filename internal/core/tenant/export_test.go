package tenant

// Cached is how many keys are cached.
func (a *Authority) Cached() (good, bad int) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.good), len(a.bad)
}
