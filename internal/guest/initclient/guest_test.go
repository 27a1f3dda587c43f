package initclient_test

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/guest/guesttest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

func TestMain(m *testing.M) {
	code := m.Run()
	guesttest.CleanUp()
	os.Exit(code)
}

// outcome is what a caller sees of a run.
type outcome struct {
	initclient.Result
	stdout, stderr string
}

func run(t *testing.T, c *initclient.Client, spec initclient.RunSpec) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var o, e bytes.Buffer
	res, err := c.Run(ctx, spec, func(s initclient.Stream, p []byte) {
		if s == initclient.Stdout {
			o.Write(p)
		} else {
			e.Write(p)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return outcome{res, o.String(), e.String()}
}

func warm(t *testing.T, c *initclient.Client, spec initclient.WarmSpec) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.Warm(ctx, spec); err != nil {
		t.Fatal(err)
	}
}

func TestWarmRun(t *testing.T) {
	for language, code := range map[string]string{
		guesttest.Python: "print(1)\n",
		guesttest.Node:   "console.log(1)\n",
		guesttest.Bash:   "echo 1\n",
	} {
		t.Run(language, func(t *testing.T) {
			c := guesttest.Start(t).Dial(t)
			warm(t, c, guesttest.Warm(t, language))
			got := run(t, c, guesttest.Program(t, language, code))
			if got.stdout != "1\n" || got.stderr != "" || got.ExitCode != 0 || !got.Warm {
				t.Errorf("got %+v", got)
			}
			again := run(t, c, guesttest.Program(t, language, code))
			if again.stdout != "1\n" || again.Warm {
				t.Errorf("a second run got %+v", again)
			}
		})
	}
}
