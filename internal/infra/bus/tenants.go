package bus

import (
	"fmt"

	"github.com/nats-io/nats.go"
)

type deletedTenant struct{ ID string }

// TenantDeleted notifies every connected process that a tenant is being deleted. Disconnected
// processes miss the message.
func (b *Bus) TenantDeleted(id string) error {
	if err := b.ctl.Publish(b.names.tenantDeleted, appendMessage([]byte{version}, deletedTenant{id}, 64)); err != nil {
		return unavailable(err)
	}
	return nil
}

// DeletedTenants calls f for each tenant that is being deleted, until stop. It may call f several
// times for the same tenant.
func (b *Bus) DeletedTenants(f func(id string)) (stop func(), err error) {
	sub, err := b.ctl.Subscribe(b.names.tenantDeleted, func(m *nats.Msg) {
		var t deletedTenant
		if len(m.Data) < 2 || m.Data[0] != version || parseMessage(m.Data[1:], &t) != nil {
			return // sent by another version; the key cache expires anyway
		}
		f(t.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("listen for deleted tenants: %w", unavailable(err))
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
