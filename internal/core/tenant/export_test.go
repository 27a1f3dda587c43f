package tenant

// Believed is how many keys are remembered.
func (a *Authority) Believed() (good, bad int) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.good), len(a.bad)
}
