package bus

import (
	"fmt"

	"github.com/nats-io/nats.go"
)

// deletedThread names a thread that was deleted.
type deletedThread struct{ Tenant, ID string }

// ThreadDeleted tells every process that a thread was deleted. A process that is away
// does not hear of it.
func (b *Bus) ThreadDeleted(tenant, id string) error {
	if err := b.ctl.Publish(b.names.threadDeleted, appendMessage([]byte{version}, deletedThread{tenant, id}, 128)); err != nil {
		return unavailable(err)
	}
	return nil
}

// DeletedThreads calls f for each thread that a process deletes, until stop.
func (b *Bus) DeletedThreads(f func(tenant, id string)) (stop func(), err error) {
	sub, err := b.ctl.Subscribe(b.names.threadDeleted, func(m *nats.Msg) {
		var t deletedThread
		if len(m.Data) < 2 || m.Data[0] != version || parseMessage(m.Data[1:], &t) != nil {
			return // of another version; the records tell later
		}
		f(t.Tenant, t.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("listen for deleted threads: %w", unavailable(err))
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
