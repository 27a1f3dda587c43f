package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func webhookOf(id session.ID) string { return "sessions/webhook/" + string(id) }

func noticePlace(id string) string { return "sessions/notice/" + id }

// sealWebhook returns nil for none.
func (s *sessions) sealWebhook(t tenant.ID, id session.ID, w session.Webhook) ([]byte, error) {
	if w.URL == "" {
		return nil, nil
	}
	plain, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	return s.db.seal.SealFor(t, plain, webhookOf(id)), nil
}

func (db *DB) openWebhook(t tenant.ID, id session.ID, sealed []byte) (w session.Webhook, err error) {
	if len(sealed) == 0 {
		return w, nil
	}
	plain, err := db.seal.OpenFor(t, sealed, webhookOf(id))
	if err == nil {
		err = json.Unmarshal(plain, &w)
	}
	return w, about(err, "webhook of session", string(id))
}

// notify stores the job that tells a session's webhook of its state, in a transaction; n may be
// nil.
func (db *DB) notify(ctx context.Context, tx *sql.Tx, n *session.Notice) error {
	if n == nil || db.tell == nil {
		return nil
	}
	plain, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return db.tell(ctx, tx, n.Tenant, n.ID(), db.seal.SealFor(n.Tenant, plain, noticePlace(n.ID())))
}

// OpenNotice opens what a job of notify has.
func (db *DB) OpenNotice(t tenant.ID, id string, sealed []byte) (*session.Notice, error) {
	plain, err := db.seal.OpenFor(t, sealed, noticePlace(id))
	n := &session.Notice{}
	if err == nil {
		err = json.Unmarshal(plain, n)
	}
	return n, about(err, "notice", id)
}

// notifyTurn tells a session's webhook of events of a turn.
func (db *DB) notifyTurn(ctx context.Context, b *batch, s *sealedTrace) error {
	v := session.Session{ID: session.ID(s.session)}
	var sealed []byte
	if err := b.row(ctx, `SELECT tenant, agent, webhook FROM sessions WHERE id = ?`, s.session).Scan(&v.Tenant, &v.Agent, &sealed); err != nil || sealed == nil {
		return err
	}
	var err error
	if v.Webhook, err = db.openWebhook(v.Tenant, v.ID, sealed); err != nil {
		return err
	}
	return db.notify(ctx, b.Tx, v.Notice(plainTold(s.told)))
}

// terminated tells a session's webhook that it has ended.
func (s *sessions) terminated(ctx context.Context, t *tx, id tenant.ID, of session.ID, at int64) error {
	v, err := s.get(ctx, t, id, of)
	if err != nil {
		return err
	}
	return s.db.notify(ctx, t.Tx, v.Termination(instant(at)))
}
