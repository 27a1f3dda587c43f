package preview

import (
	"crypto/subtle"
	"regexp"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

var everyPattern = regexp.MustCompile(`^([1-9][0-9]{0,4})-((sb-[0-9a-f]{16})-[a-z2-7]{26})$`)

// Every is a name that leads to every port of a sandbox: a port, a hyphen and the name are
// a label. It is as much of a secret as a preview's, is not recorded, and leads to the
// sandbox for as long as that exists. Other protocols have such names.
func (p *Previews) Every(id runtime.ID) string {
	return string(id) + "-" + encoding.EncodeToString(p.key.Sum([]byte(id), "preview-every"))
}

// OfEvery finds what a label leads to that was made of Every; ok is false for all others.
func (p *Previews) OfEvery(label string) (id runtime.ID, port uint16, ok bool) {
	part := everyPattern.FindStringSubmatch(label)
	if part == nil {
		return "", 0, false
	}
	n, err := strconv.ParseUint(part[1], 10, 16)
	if err != nil {
		return "", 0, false
	}
	id = runtime.ID(part[3])
	if subtle.ConstantTimeCompare([]byte(p.Every(id)), []byte(part[2])) == 0 {
		return "", 0, false
	}
	return id, uint16(n), true
}

// Hide takes the secrets out of a path in which names of Every may be.
func Hide(path string) string {
	if !strings.Contains(path, "sb-") {
		return path
	}
	return everyName.ReplaceAllString(path, "$1-…")
}

var everyName = regexp.MustCompile(`(sb-[0-9a-f]{16})-[a-z2-7]{26}`)
