package engine

import (
	"testing"
	"time"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/node/warm"
)

func TestShared(t *testing.T) {
	e := start(t, folder(t), nil)
	j := job(func(j *execution.Job) { j.Language = execution.Language(os.Getenv("L")) })
	env, _, err := e.use(j)
	if err != nil { t.Fatal(err) }
	defer e.unuse(env)
	key := env.maker.Key(j.Language, "", false, false)
	var sb *warm.Sandbox
	at := time.Now()
	sb, err = env.maker.MakeShared(t.Context(), key)
	if err != nil { t.Fatal(err) }
	defer sb.Destroy(t.Context())
	t.Log("made", time.Since(at))
	code, _ := os.ReadFile(os.Getenv("F"))
	for i := range 6 {
		at = time.Now()
		if err := sb.Renew(t.Context()); err != nil { t.Fatal(err) }
		t.Log("renewed", time.Since(at))
		at = time.Now()
		var b strings.Builder
		out, err := sb.Run(t.Context(), execution.Program{ID: uint64(i+1), Language: j.Language, Code: string(code), Timeout: time.Minute, MaxBytes: 10000},
		func(_ execution.Stream, p []byte) { b.Write(p) })
		t.Logf("ran %s %v %+v\n%s", time.Since(at), err, out, b.String())
	}
}
