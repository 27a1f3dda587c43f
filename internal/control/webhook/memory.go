package webhook

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// maxMemory bounds what the messages under way may take together.
	maxMemory = 256 << 20
	// tenantParts is how many tenants fill it: each one's messages have a part of it that is
	// as large. A message larger than that is under way without another of its tenant.
	tenantParts = 4
)

// memory shares its bytes among tenants, so that messages that no receiver takes
// hold up those of their own tenant only.
type memory struct {
	size int64 // bytes of all messages under way
	all  *semaphore.Weighted

	mu      sync.Mutex
	tenants map[string]*share // guarded by mu: those with messages
}

// share is the memory of one tenant.
type share struct {
	*semaphore.Weighted
	users int // guarded by memory.mu: messages that wait or are under way
}

func newMemory(size int64) *memory {
	return &memory{size: size, all: semaphore.NewWeighted(size), tenants: map[string]*share{}}
}

// part is the memory of one tenant.
func (m *memory) part() int64 { return m.size / tenantParts }

// held is what a message has of the memory.
type held struct {
	m      *memory
	tenant string
	share  *share
	bytes  int64
}

// acquire waits for memory; the caller releases it.
func (m *memory) acquire(ctx context.Context, tenant string, bytes int64) (*held, error) {
	bytes = min(bytes, m.size)
	m.mu.Lock()
	s := m.tenants[tenant]
	if s == nil {
		s = &share{Weighted: semaphore.NewWeighted(m.part())}
		m.tenants[tenant] = s
	}
	s.users++
	m.mu.Unlock()
	h := &held{m: m, tenant: tenant, share: s}
	err := s.Acquire(ctx, min(bytes, m.part()))
	if err == nil {
		if err = m.all.Acquire(ctx, bytes); err != nil {
			s.Release(min(bytes, m.part()))
		}
	}
	if err != nil {
		h.release()
		return nil, fmt.Errorf("wait for memory: %w", err)
	}
	h.bytes = bytes
	return h, nil
}

// shrink gives back what a message does not need of its memory.
func (h *held) shrink(bytes int64) {
	if bytes >= h.bytes {
		return
	}
	h.m.all.Release(h.bytes - bytes)
	h.share.Release(min(h.bytes, h.m.part()) - min(bytes, h.m.part()))
	h.bytes = bytes
}

func (h *held) release() {
	h.shrink(0)
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.share.users--; h.share.users == 0 {
		delete(h.m.tenants, h.tenant)
	}
}
