package sdk

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// provider is a provider whose model does what the last message of the user says, as
// sdk/scenarios/README.md describes: "say WORDS", "slow", "weather", "run CODE" and "tool NAME
// ARGUMENTS". It ends with the results of its calls.
func provider() *scriptedmodel.Provider {
	return &scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, results := conversation(r.Body)
		return obey(said, results)
	}}
}

// slowWords and slowPace make an answer of at least 20 s, which only a cancellation ends sooner.
const (
	slowWords = 1000
	slowPace  = 20 * time.Millisecond
)

func obey(said, results string) (turn scriptedmodel.Turn, ok bool) {
	if results != "" {
		return scriptedmodel.Say("The result is " + results), true
	}
	switch word, rest, _ := strings.Cut(said, " "); word {
	case "say":
		turn := scriptedmodel.Say("")
		turn.Blocks[0].Text = strings.SplitAfter(rest, " ")
		return turn, true
	case "slow":
		turn := scriptedmodel.Say("")
		turn.Blocks[0].Text, turn.Pace = strings.SplitAfter(strings.Repeat("word ", slowWords), " "), slowPace
		return turn, true
	case "weather":
		return scriptedmodel.Ask("call_1", "get_weather", `{"city": "Oslo"}`), true
	case "run":
		arguments, err := json.Marshal(map[string]string{"language": "python", "code": rest})
		return scriptedmodel.Ask("call_1", "run_code", string(arguments)), err == nil
	case "tool":
		name, arguments, _ := strings.Cut(rest, " ")
		return scriptedmodel.Ask("call_1", name, arguments), true
	}
	return turn, false
}

// conversation is the last message of the user in a request, and the results after it.
func conversation(body map[string]any) (said, results string) {
	items, _ := body["input"].([]any)
	for _, it := range items {
		switch it, _ := it.(map[string]any); {
		case it["type"] == "function_call_output":
			results += fmt.Sprint(it["output"])
		case it["role"] == "user":
			parts, _ := it["content"].([]any)
			if len(parts) == 0 {
				continue
			}
			first, _ := parts[0].(map[string]any)
			said, results = fmt.Sprint(first["text"]), ""
		}
	}
	return said, results
}
