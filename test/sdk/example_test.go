package sdk

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/atoll-run/atoll/test/atolltest"
)

// exampleSteps are what a visitor of examples/reactive does, as bodies of functions, and what
// each is to answer. until waits for the text of a part of the page, type changes a cell.
var exampleSteps = []struct{ does, want string }{
	{`return until("#python pre", "0\n1\n4\n")`, "0\n1\n4\n"},
	{`type("#python textarea", "print('changed')"); return until("#python pre", "changed\n")`, "changed\n"},
	{`type("#python textarea", "1/0"); return (await until("#python .error", "ZeroDivisionError")).split("\n").at(-2)`, "ZeroDivisionError: division by zero"},
	{`return until("#typescript .out", "hello, page\n")`, "hello, page\n"},
	{`return (await until("#typescript .js", "greet")).includes(": string")`, "false"},
	{`say("echo 20 > n"); say("cat n; echo bad >&2"); return until("#shell .stderr", "bad\n")`, "bad\n"},
	{`return [...document.querySelectorAll("#shell pre:not(.stderr)")].at(-1).textContent`, "20\n"},
	{`await until("#csv pre", "2026"); return document.querySelector("#csv pre").textContent`, `{"2026-01": 2000, "2026-02": 2450, "2026-03": 2500}` + "\n"},
	{`const chart = await there("#csv img"); await chart.decode(); return chart.naturalWidth + " " + chart.naturalHeight`, "210 140"},
}

// exampleHelpers are what the steps use.
const exampleHelpers = `
const there = (selector, text = "") => new Promise((resolve, reject) => {
	const look = () => {
		const at = document.querySelector(selector);
		if (!at?.isConnected || !(at.textContent ?? "").includes(text)) return;
		observer.disconnect(); clearTimeout(late); resolve(at);
	};
	const observer = new MutationObserver(look);
	const late = setTimeout(() => reject(new Error(selector + " did not show " + text + ", the page has: " + document.body.innerText)), 40000);
	observer.observe(document, { childList: true, subtree: true, characterData: true, attributes: true });
	look();
});
const until = async (selector, text) => (await there(selector, text)).textContent;
const type = (selector, text) => { const at = document.querySelector(selector); at.value = text; at.dispatchEvent(new Event("change", { bubbles: true })); };
const say = (command) => { const at = document.querySelector("#shell input"); at.value = command; at.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true })); };
`

// TestReactiveExample builds examples/reactive, and visits it in Chromium.
func TestReactiveExample(t *testing.T) {
	p := arranged(t)
	root := t.TempDir()
	folder := filepath.Join(root, "examples", "reactive")
	typescriptFolder(t, "scripts/install.sh", "../../examples/reactive")
	// A copy, beside which the library is built: others may be building it where it is.
	typescriptFolder(t, "node_modules/.bin/tsc", "-p", ".", "--outDir", filepath.Join(root, "sdk", "typescript", "dist"))
	typescriptFolder(t, "sh", "-c", `cp package.json "$1/sdk/typescript" && mkdir "$1/examples" && cp -a ../../examples/reactive ../../examples/sales.csv "$1/examples"`, "sh", root)
	compiler, err := filepath.Abs("../../sdk/typescript/node_modules/typescript/bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"node", compiler, "-p", "."}, {"npm", "run", "-s", "build"}} {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir = folder
		if out, err := atolltest.Output(cmd); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	ctx, said := browser(t, serveExample(t, p, folder))
	if err := chromedp.Do(ctx, chromedp.Navigate(pageOrigin+"/")); err != nil {
		t.Fatal(err)
	}
	for _, step := range exampleSteps {
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string]("(async () => {"+exampleHelpers+"return String(await (async () => {"+step.does+"})())})()", chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("%s: %v\n%s", step.does, err, said())
		}
		if got != step.want {
			t.Errorf("%s answers %q, want %q", step.does, got, step.want)
		}
	}
	if text := said(); text != "" {
		t.Errorf("the console has:\n%s", text)
	}
}

// serveExample starts the example's server, and returns its address.
func serveExample(t *testing.T, p *place, folder string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "server.mjs")
	cmd.Dir = folder
	cmd.Env = append(p.environment(), "PORT=0", "ORIGIN="+pageOrigin)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if errs.Len() > 0 {
			t.Errorf("the example's server said: %s", errs.String())
		}
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal(fmt.Errorf("the example's server said nothing: %w", lines.Err()))
	}
	return regexp.MustCompile(`http://\S+`).FindString(lines.Text())
}
