package webhook

import "time"

// Backoff holds the waits between attempts at a webhook: the first wait follows the first failed
// attempt. A webhook fails for good after the attempt that follows the last wait.
type Backoff []time.Duration

// Retries is the Backoff of failures of receivers.
var Retries = Backoff{time.Second, 10 * time.Second, time.Minute}

// After returns the wait after a number of failed attempts, from 1; false if no attempt is left.
func (b Backoff) After(failed int) (time.Duration, bool) {
	if failed > len(b) {
		return 0, false
	}
	return b[failed-1], true
}

// MaxOwnFailures limits failures of the server to build a message. They do not count as attempts.
const MaxOwnFailures = 20

// AfterOwn returns the wait after a number of failures of the server, from 1: it doubles from 1 s
// to 1 minute.
func AfterOwn(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 6), time.Minute)
}
