package response

import "github.com/atoll-run/atoll/internal/core/run"

// addCalls adds the calls of services that code in the sandbox made to those of the model.
func addCalls(u *ResponseUsage, s *run.State) {
	for i := range s.Output {
		if s.Output[i].Code == nil {
			continue
		}
		for name, n := range s.Output[i].Code.Calls {
			for range n {
				u.count(name)
			}
		}
	}
}
