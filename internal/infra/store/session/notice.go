package session

import (
	"context"
	"database/sql"

	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

func webhookOf(id session.ID) string { return "sessions/webhook/" + string(id) }

func noticePlace(id string) string { return "sessions/notice/" + id }

// sealWebhook returns nil for none.
func (s *Store) sealWebhook(t tenant.ID, id session.ID, w session.Webhook) ([]byte, error) {
	if w.URL == "" {
		return nil, nil
	}
	return s.db.SealJSON(t, w, webhookOf(id))
}

func (s *Store) openWebhook(t tenant.ID, id session.ID, sealed []byte) (w session.Webhook, err error) {
	if len(sealed) == 0 {
		return w, nil
	}
	err = s.db.OpenJSON(t, sealed, webhookOf(id), &w)
	return w, sqldb.About(err, "webhook of session", string(id))
}

// notify stores the job that tells a session's webhook of its state, in a transaction; n may be
// nil.
func (s *Store) notify(ctx context.Context, tx *sql.Tx, n *session.Notice) error {
	if n == nil || s.tell == nil {
		return nil
	}
	sealed, err := s.db.SealJSON(n.Tenant, n, noticePlace(n.ID()))
	if err != nil {
		return err
	}
	return s.tell(ctx, tx, n.Tenant, n.ID(), sealed)
}

// OpenNotice opens what a job of notify has.
func (s *Store) OpenNotice(t tenant.ID, id string, sealed []byte) (*session.Notice, error) {
	n := &session.Notice{}
	err := s.db.OpenJSON(t, sealed, noticePlace(id), n)
	return n, sqldb.About(err, "notice", id)
}

// notifyTurn tells a session's webhook of events of a turn.
func (s *Store) notifyTurn(ctx context.Context, b *sqldb.Batch, trace *SealedTrace) error {
	v := session.Session{ID: session.ID(trace.Session)}
	var sealed []byte
	if err := b.Row(ctx, `SELECT tenant, agent, webhook FROM sessions WHERE id = ?`, trace.Session).Scan(&v.Tenant, &v.Agent, &sealed); err != nil || sealed == nil {
		return err
	}
	var err error
	if v.Webhook, err = s.openWebhook(v.Tenant, v.ID, sealed); err != nil {
		return err
	}
	return s.notify(ctx, b.SQL(), v.Notice(plainEvents(trace.events)))
}

// terminated tells a session's webhook that it has ended.
func (s *Store) terminated(ctx context.Context, t *sqldb.Tx, id tenant.ID, of session.ID, at int64) error {
	v, err := s.get(ctx, t, id, of)
	if err != nil {
		return err
	}
	return s.notify(ctx, t.SQL(), v.Termination(sqldb.Instant(at)))
}
