package service

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// obedient is a provider whose model does what the last message of the user says: it runs
// what follows "run ", repeats what follows "say ", speaks slowly after "slow", and calls
// get_weather after "weather". It ends with the results of its calls.
func obedient(t *testing.T) *httptest.Server {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, result := conversation(r.Body)
		turn, ok := obey(said, result)
		if !ok {
			t.Errorf("the model was asked %q", said)
		}
		return turn, ok
	}})
	t.Cleanup(p.Close)
	return p
}

// obey is what an obedient model answers.
func obey(said, result string) (turn scriptedmodel.Turn, ok bool) {
	if result != "" {
		return scriptedmodel.Say("The result is " + result), true
	}
	switch word, rest, _ := strings.Cut(said, " "); word {
	case "run":
		arguments, err := json.Marshal(map[string]string{"language": "python", "code": rest})
		return scriptedmodel.Ask("call_1", "run_code", string(arguments)), err == nil
	case "say":
		return scriptedmodel.Say(rest), true
	case "call":
		return scriptedmodel.Ask("call_1", rest, "{}"), true
	case "weather":
		return scriptedmodel.Ask("call_1", "get_weather", `{"city": "Oslo"}`), true
	case "slow":
		slow := scriptedmodel.Say("")
		slow.Blocks[0].Text, slow.Pace = strings.SplitAfter(strings.Repeat("word ", 2000), " "), 20*time.Millisecond
		return slow, true
	}
	return turn, false
}

// conversation is the last message of the user in a request, and the results after it.
func conversation(body map[string]any) (said, results string) {
	items, _ := body["input"].([]any)
	for _, it := range items {
		switch it := it.(map[string]any); {
		case it["type"] == "function_call_output", it["type"] == "custom_tool_call_output":
			results += fmt.Sprint(it["output"])
		case it["role"] == "user":
			parts, _ := it["content"].([]any)
			first, _ := parts[0].(map[string]any)
			said, results = fmt.Sprint(first["text"]), ""
		}
	}
	return said, results
}
