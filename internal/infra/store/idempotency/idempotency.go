// Package idempotency stores requests with an Idempotency-Key and their answers.
package idempotency

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/atoll-run/atoll/internal/core/idempotency"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements idempotency.Store.
type Store struct{ db *sqldb.DB }

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

func answerPlace(r idempotency.Request) string {
	return "idempotent_requests/" + r.Tenant + "/" + r.Caller + "/" + r.Key
}

// bodyPlace is what digests of bodies are keyed for: a body may have a secret that can be
// guessed.
func bodyPlace(r idempotency.Request) string { return "idempotent_requests/body/" + r.Tenant }

// maxBegins is how often a request tries to claim a key that earlier requests release.
const maxBegins = 5

func (s *Store) Begin(ctx context.Context, r idempotency.Request) (earlier *idempotency.Record, err error) {
	for range maxBegins {
		begun := false
		err = s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
			now, err := t.Clock(ctx)
			if err != nil {
				return err
			}
			lease := sqldb.Micros(now.Add(idempotency.Lease))
			n, err := t.Exec(ctx, `INSERT INTO idempotent_requests AS r (tenant, caller, key, body, state, lease_until, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)
				ON CONFLICT (tenant, caller, key) DO UPDATE SET body = excluded.body, state = excluded.state, lease_until = excluded.lease_until, created_at = excluded.created_at, answer = NULL
					WHERE r.created_at <= ? AND r.lease_until <= ?`,
				r.Tenant, r.Caller, r.Key, s.db.Seal.Sum(r.Body[:], bodyPlace(r)), string(idempotency.Begun), lease, sqldb.Micros(now), sqldb.Micros(now.Add(-idempotency.Keep)), sqldb.Micros(now))
			begun = n > 0
			return err
		})
		if err != nil || begun {
			return nil, s.db.Write.Wrap("begin a request", err)
		}
		if earlier, err = s.get(ctx, s.db.Write, r); err != nil || earlier != nil {
			return earlier, err
		}
	}
	return nil, idempotency.ErrContended
}

func (s *Store) Get(ctx context.Context, r idempotency.Request) (*idempotency.Record, error) {
	return s.get(ctx, s.db.Read, r)
}

func (s *Store) get(ctx context.Context, from *sqldb.Pool, r idempotency.Request) (*idempotency.Record, error) {
	now, err := from.Clock(ctx, from)
	if err != nil {
		return nil, err
	}
	var body, sealed []byte
	var until int64
	var out idempotency.Record
	err = from.Row(ctx, `SELECT body, state, lease_until, answer FROM idempotent_requests WHERE tenant = ? AND caller = ? AND key = ?`, r.Tenant, r.Caller, r.Key).Scan(&body, &out.State, &until, &sealed)
	if err == sql.ErrNoRows {
		return nil, nil
	}
	if err != nil {
		return nil, from.Wrap("read a request", err)
	}
	if s.db.Seal.Check(r.Body[:], bodyPlace(r), body) {
		out.Body = r.Body
	}
	switch {
	case out.State == idempotency.Begun && until <= sqldb.Micros(now):
		out.State = idempotency.Unknown
	case out.State == idempotency.Done:
		plain, err := s.db.Seal.OpenFor(r.Tenant, sealed, answerPlace(r))
		if err == nil {
			err = json.Unmarshal(plain, &out.Answer)
		}
		if err != nil {
			return nil, from.Wrap("read a request", sqldb.About(err, "the answer", r.Key))
		}
	}
	return &out, nil
}

func (s *Store) Renew(ctx context.Context, r idempotency.Request) error {
	return s.db.Exec(ctx, "renew a request", `UPDATE idempotent_requests SET lease_until = atoll_now() + ? WHERE tenant = ? AND caller = ? AND key = ? AND state = ?`, idempotency.Lease.Microseconds(), r.Tenant, r.Caller, r.Key, string(idempotency.Begun))
}

func (s *Store) End(ctx context.Context, r idempotency.Request, state idempotency.State, a idempotency.Answer) error {
	var sealed []byte
	if state == idempotency.Done {
		plain, err := json.Marshal(a)
		if err != nil {
			return s.db.Write.Wrap("end a request", err)
		}
		sealed = s.db.Seal.SealFor(r.Tenant, plain, answerPlace(r))
	}
	return s.db.Transact(ctx, "end a request", func(t *sqldb.Tx) error {
		n, err := t.Exec(ctx, `UPDATE idempotent_requests SET state = ?, lease_until = 0, answer = ? WHERE tenant = ? AND caller = ? AND key = ? AND state = ?`, string(state), sealed, r.Tenant, r.Caller, r.Key, string(idempotency.Begun))
		if err != nil || n == 0 {
			return err
		}
		if _, err := t.Exec(ctx, `DELETE FROM idempotent_objects WHERE tenant = ? AND caller = ? AND key = ?`, r.Tenant, r.Caller, r.Key); err != nil {
			return err // those of a request that had the key a day ago
		}
		for _, object := range a.Objects {
			if _, err := t.Exec(ctx, `INSERT INTO idempotent_objects (tenant, object, caller, key) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, r.Tenant, object, r.Caller, r.Key); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) Forget(ctx context.Context, tenant string, objects []string) error {
	for _, object := range objects {
		if _, err := s.db.Write.Exec(ctx, `DELETE FROM idempotent_requests WHERE tenant = ? AND state <> ? AND (caller, key) IN (SELECT caller, key FROM idempotent_objects WHERE tenant = ? AND object = ?)`,
			tenant, string(idempotency.Begun), tenant, object); err != nil {
			return s.db.Write.Wrap("forget answers", err)
		}
	}
	return nil
}

func (s *Store) Release(ctx context.Context, r idempotency.Request) error {
	return s.db.Exec(ctx, "release a request", `DELETE FROM idempotent_requests WHERE tenant = ? AND caller = ? AND key = ? AND state = ?`, r.Tenant, r.Caller, r.Key, string(idempotency.Begun))
}

func (s *Store) Purge(ctx context.Context, most int) (int, error) {
	n, err := s.db.Write.Exec(ctx, `DELETE FROM idempotent_requests WHERE (tenant, caller, key) IN (SELECT tenant, caller, key FROM idempotent_requests WHERE created_at <= atoll_now() - ? ORDER BY created_at LIMIT ?)`,
		(idempotency.Keep + time.Hour).Microseconds(), most)
	return int(n), s.db.Write.Wrap("purge old requests", err)
}
