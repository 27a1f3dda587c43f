package service

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// agentRegion answers what examples/agents/analyst.sh asks next.
const agentRegion = `import csv
rows = [r for r in csv.DictReader(open('sales.csv')) if r['month'] == '2026-03']
print(max(rows, key=lambda r: int(r['revenue']))['region'])`

const primesProgram = `open('primes.py', 'w').write("print(*[n for n in range(2, 30) if all(n % d for d in range(2, n))])")
exec(open('primes.py').read())`

// patchProgram does what examples/agents/coder.sh asks for.
const patchProgram = `git clone -q median.bundle work && cd work && ! python3 -m unittest -q 2>/dev/null &&
sed -i 's|len(numbers) / 2|len(numbers) // 2|' median.py && python3 -m unittest -q &&
git -c user.name=agent -c user.email=agent@example.com commit -qam "median: divide whole numbers" &&
git format-patch -1 --stdout >../mend.patch && echo mended`

// team is a provider whose models do what the examples of agents ask for.
func team(t *testing.T) *httptest.Server {
	turns := map[string][]scriptedmodel.Turn{
		"sales.csv":     {coded("python", chartProgram), scriptedmodel.Ask("call2", "share_file", `{"file_path": "chart.svg"}`)},
		"which region":  {coded("python", agentRegion)},
		"median.bundle": {coded("bash", patchProgram), scriptedmodel.Ask("call2", "share_file", `{"file_path": "mend.patch"}`)},

		"ten prime numbers": {scriptedmodel.Ask("call", "handoff_to_code_agent", `{"task": "Write primes.py."}`), scriptedmodel.Ask("call2", "handoff_to_qa_agent", `{"task": "Test the program."}`)},
		"Write primes.py":   {coded("python", primesProgram)},
		"Test the program":  {coded("bash", "python3 primes.py | wc -w")},
		"charged twice":     {scriptedmodel.Ask("call", "handoff_to_billing_agent", `{"reason": "an invoice"}`)},
		"does not start":    {scriptedmodel.Ask("call", "handoff_to_technical_agent", `{}`)},
	}
	return scripts(t, turns, func(body map[string]any) string {
		_, told := conversation(body)
		who, _, _ := strings.Cut(fmt.Sprint(body["instructions"]), ".")
		return who + ": " + told
	})
}

// TestAgentExamples runs the examples of agents, each as its first lines say.
func TestAgentExamples(t *testing.T) {
	s := shared(t)
	a := newAsker(t, s.URL, s.Tenant(t, "example-agents", "pro"))
	lendModel(t, s, "clever", team(t).URL, model.Capabilities...)
	for name, want := range map[string]example{
		"orchestrator.sh": {[]string{"example-orchestrator: created", "2 3 5 7 11 13 17 19 23 29", "thread_created", "You are a project manager: ", "QA agent is done", "stdout:\n10\n"}, "", ""},
		"swarm.sh":        {[]string{"example-triage: created", "You answer questions about invoices and refunds: ", "You solve technical problems of customers, step by step: ", "speaker"}, "", ""},

		"analyst.sh": {[]string{"data-analyst: created", "2026-03 2500", "saved", "south"}, "chart.svg", `<svg xmlns="http://www.w3.org/2000/svg"`},
		"coder.sh":   {[]string{"coding-agent: created", "mended", "median: divide whole numbers", "OK"}, "median/median.py", "len(numbers) // 2"},
	} {
		t.Run(name, func(t *testing.T) { want.run(t, a, filepath.Join("agents", name), "clever") })
	}
}
