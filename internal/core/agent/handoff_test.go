package agent

import "testing"

func TestHandoffTool(t *testing.T) {
	for name, want := range map[string]string{
		"Research Agent": "handoff_to_research_agent", "  QA (2nd) -- team ": "handoff_to_qa_2nd_team", "研究": "handoff_to_agent_3", "Café": "handoff_to_caf",
		"a very long name that goes on and on and on, further than any tool may be called": "handoff_to_a_very_long_name_that_goes_on_and_on_and_on_further_t",
	} {
		if got := HandoffTool(name, 3); got != want || !toolPattern.MatchString(got) {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
