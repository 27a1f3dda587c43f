package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestRandomness runs programs that print what random generators give, one
// source a line, several times each: no line may ever come twice. Those that
// import the preloads run in sandboxes restored from one checkpoint.
//
// What these do share, the hash seed and addresses, is a documented residual.
func TestRandomness(t *testing.T) {
	for _, c := range []struct{ name, language, code string }{
		{"Python", atolltest.Python, `import random, secrets, uuid, os, tempfile, ssl
print(random.random()); print(random.getrandbits(64)); print(random.Random().random()); print(random.SystemRandom().random())
print(secrets.token_hex()); print(uuid.uuid4()); print(os.urandom(8)); print(os.getrandom(8)); print(tempfile.mktemp()); print(ssl.RAND_bytes(8))
print(open('/dev/urandom', 'rb').read(8)); print(open('/proc/sys/kernel/random/uuid').read())
import subprocess; print(subprocess.check_output(['bash', '-c', 'echo $RANDOM$RANDOM$RANDOM']))
import multiprocessing; print(multiprocessing.get_context('fork').Pool(1).map(lambda x: 0, []) or random.random())`},
		{"Python hash seed", atolltest.Python, "print(hash('a'))"},
		{"Python with preloads", atolltest.Python, `import numpy as np, pandas, random, secrets, uuid, os, tempfile
print(random.random()); print(random.Random().random()); print(np.random.rand()); print(np.random.default_rng().random()); print(np.random.RandomState().rand())
print(np.random.bytes(8)); print(np.random.SeedSequence().entropy); print(pandas.Series(range(1000)).sample(5).tolist())
print(secrets.token_hex()); print(uuid.uuid4()); print(os.urandom(8)); print(tempfile.mktemp())
print(open('/proc/sys/kernel/random/uuid').read())`},
		{"Node", atolltest.Node, `const c = require('crypto');
console.log(Math.random()); console.log(c.randomBytes(8)); console.log(c.randomUUID()); console.log(crypto.randomUUID());
console.log(c.randomInt(2**47)); console.log(c.generateKeyPairSync('ed25519').publicKey.export({format: 'jwk'}).x); console.log(crypto.getRandomValues(new Uint32Array(3)));
console.log(require('fs').mkdtempSync('/tmp/x-'));`},
		{"Bash", atolltest.Bash, "echo $RANDOM$RANDOM$RANDOM\necho $SRANDOM$SRANDOM\nmktemp\nhead -c 8 /dev/urandom | od -An -x\ncat /proc/sys/kernel/random/uuid\nawk 'BEGIN{srand(); }' ; shuf -i 1-1000000 -n 3 | tr '\\n' ' '\n(echo $RANDOM$RANDOM$RANDOM)\n"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := shared(t)
			seen := map[string]int{}
			for i := range atolltest.Count(4, 40) {
				r := s.Run(t, atolltest.Program{Language: c.language, Code: c.code})
				if r.Status != http.StatusOK || r.ExitCode != 0 {
					t.Fatal(r)
				}
				for line := range strings.Lines(r.Stdout) {
					if line = strings.TrimSpace(line); line == "" {
						continue
					}
					if earlier, ok := seen[line]; ok {
						t.Errorf("runs %d and %d both gave %s", earlier, i, line)
					}
					seen[line] = i
				}
			}
		})
	}
}
