package proof_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/proof"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

func TestProof(t *testing.T) {
	s := storetest.Box(t)
	p := proof.Of(s, "purpose", "ab", "c", "")
	if !proof.Check(s, p, "purpose", "ab", "c", "") {
		t.Error("a proof is not its own")
	}
	for name, parts := range map[string][]string{
		"moved": {"a", "bc", ""}, "fewer": {"ab", "c"}, "more": {"ab", "c", "", ""}, "none": nil, "joined": {"ab\x01c\x00"}, "order": {"c", "ab", ""},
	} {
		if proof.Check(s, p, "purpose", parts...) {
			t.Errorf("%s: the proof of other parts was accepted", name)
		}
	}
	if proof.Check(s, p, "purposes", "ab", "c", "") || proof.Check(s, nil, "purpose", "ab", "c", "") || proof.Check(nil, p, "purpose", "ab", "c", "") || proof.Check(s, p[:8], "purpose", "ab", "c", "") {
		t.Error("a proof without its purpose, its signer or its bytes was accepted")
	}
}
