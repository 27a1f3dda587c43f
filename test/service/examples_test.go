package service

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// chartProgram draws the chart that examples/chart.sh asks for.
const chartProgram = `import collections, csv
sums = collections.Counter()
for row in csv.DictReader(open('sales.csv')):
    sums[row['month']] += int(row['revenue'])
bars = ''.join(f'<rect x="{60 * i}" y="{300 - n // 10}" width="50" height="{n // 10}"/>' for i, (_, n) in enumerate(sorted(sums.items())))
open('chart.svg', 'w').write(f'<svg xmlns="http://www.w3.org/2000/svg" width="200" height="300">{bars}</svg>')
print(*max(sums.items(), key=lambda s: s[1]))`

// fixProgram fixes the program of examples/fix.sh.
const fixProgram = `import subprocess
text = open('median.py').read().replace('len(numbers) / 2', 'len(numbers) // 2')
open('median.py', 'w').write(text)
print(subprocess.run(['python3', 'median.py'], capture_output=True, text=True, check=True).stdout)`

// searchProgram counts what examples/search.sh asks for.
const searchProgram = `import atoll_web, collections, csv, urllib.parse
pages = {p['url'] for topic in ('atolls', 'reefs', 'lagoons') for p in atoll_web.search(topic)}
counts = collections.Counter(urllib.parse.urlsplit(url).hostname for url in pages)
with open('domains.csv', 'w') as out:
    csv.writer(out).writerows([('host', 'pages'), *counts.most_common()])
print(*counts.most_common(1)[0])`

// diligent is a provider whose model does what the examples ask for.
func diligent(t *testing.T) *httptest.Server {
	turns := map[string][]scriptedmodel.Turn{
		"domains.csv": {coded("python", searchProgram), scriptedmodel.Ask("call", "share_file", `{"file_path": "domains.csv"}`)},
		"sales.csv":   {coded("python", chartProgram), scriptedmodel.Ask("call", "share_file", `{"file_path": "chart.svg"}`)},
		"median.py":   {coded("python", "exec(open('median.py').read())"), coded("python", fixProgram), scriptedmodel.Ask("call", "share_file", `{"file_path": "median.py"}`)},
	}
	return scripts(t, turns, recalled)
}

// scripts is a provider whose models do in turn what is written for a part of what they were
// told last, and then say the end of it.
func scripts(t *testing.T, all map[string][]scriptedmodel.Turn, end func(body map[string]any) string) *httptest.Server {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, _ := conversation(r.Body)
		results := 0
		items, _ := r.Body["input"].([]any)
		for _, it := range items {
			switch item, _ := it.(map[string]any); {
			case item["type"] == "function_call_output":
				results++
			case item["role"] == "user":
				results = 0
			}
		}
		for part, turns := range all {
			if !strings.Contains(said, part) {
				continue
			}
			if results < len(turns) {
				return turns[results], true
			}
			return scriptedmodel.Say(end(r.Body)), true
		}
		t.Errorf("the model was asked %q", said)
		return scriptedmodel.Turn{}, false
	}})
	t.Cleanup(p.Close)
	return p
}

// coded is a call of run_code.
func coded(language, code string) scriptedmodel.Turn {
	arguments, _ := json.Marshal(map[string]string{"language": language, "code": code}) // texts: never fails
	return scriptedmodel.Ask("call", "run_code", string(arguments))
}

// example is what an example says, and what it leaves in the folder that it is given; none for
// one that is given none.
type example struct {
	said      []string
	file, has string
}

func (e example) run(t *testing.T, a *asker, name string, args ...string) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if e.file != "" {
		args = append([]string{folder}, args...)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", "examples", name), args...)
	cmd.Env = append(a.env, "ATOLL="+binary)
	out, err := atolltest.Output(cmd)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range e.said {
		if !strings.Contains(string(out), part) {
			t.Errorf("it does not say %q:\n%s", part, out)
		}
	}
	if e.file == "" {
		return
	}
	if text, err := os.ReadFile(filepath.Join(folder, e.file)); err != nil || !strings.Contains(string(text), e.has) {
		t.Errorf("%s: %v, %s", e.file, err, text)
	}
}

// TestExamples runs the examples that ask models, each as its first lines say.
func TestExamples(t *testing.T) {
	s := shared(t)
	a := newAsker(t, s.URL, s.Tenant(t, "examples", "pro"))
	lendModel(t, s, "clever", diligent(t).URL, model.Capabilities...)
	for name, want := range map[string]example{
		"chart.sh":  {[]string{"2026-03 2500", "chart.svg"}, "chart.svg", `<svg xmlns="http://www.w3.org/2000/svg"`},
		"search.sh": {[]string{"example.org 3", "domains.csv"}, "domains.csv", "example.org,3\r\n"},
		"fix.sh":    {[]string{"TypeError: list indices must be integers", "well", "-    middle = len(numbers) / 2", "+    middle = len(numbers) // 2"}, "fixed/median.py", "len(numbers) // 2"},
	} {
		t.Run(name, func(t *testing.T) { want.run(t, a, name) })
	}
}
