package bus

import (
	"fmt"

	"github.com/nats-io/nats.go"
)

type deletedTenant struct{ ID string }

// TenantDeleted tells every process that a tenant is being deleted. A process that is away does
// not hear of it.
func (b *Bus) TenantDeleted(id string) error {
	if err := b.ctl.Publish(b.names.tenantDeleted, appendMessage([]byte{version}, deletedTenant{id}, 64)); err != nil {
		return unavailable(err)
	}
	return nil
}

// DeletedTenants calls f for each tenant that is being deleted, perhaps again and again, until stop.
func (b *Bus) DeletedTenants(f func(id string)) (stop func(), err error) {
	sub, err := b.ctl.Subscribe(b.names.tenantDeleted, func(m *nats.Msg) {
		var t deletedTenant
		if len(m.Data) < 2 || m.Data[0] != version || parseMessage(m.Data[1:], &t) != nil {
			return // of another version; keys end with what is remembered of them
		}
		f(t.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("listen for deleted tenants: %w", unavailable(err))
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
