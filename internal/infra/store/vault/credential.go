package vault

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

const credentialFrom = ` FROM vault_credentials c JOIN vaults v ON v.id = c.vault WHERE v.tenant = ?`

func credentialPlace(id vault.CredentialID, part string) string {
	return fmt.Sprintf("vault_credentials/%s/%s", part, id)
}

// credentialAbout is the visible part of a credential.
type credentialAbout struct {
	About vault.About
	Auth  vault.Auth
}

// credentialRow is a credential as it is stored, with its place in lists.
type credentialRow struct {
	vault.Credential
	seq           int64
	about, secret []byte
}

// credentialView is a credential with the tenant of its vault.
var credentialView = sqldb.NewView(
	sqldb.Col("c.seq", sqldb.Read, func(r *credentialRow) any { return &r.seq }),
	sqldb.Col("c.id", sqldb.Read, func(r *credentialRow) any { return &r.ID }),
	sqldb.Col("c.vault", sqldb.Read, func(r *credentialRow) any { return &r.Vault }),
	sqldb.Col("v.tenant", sqldb.Read, func(r *credentialRow) any { return &r.Tenant }),
	sqldb.Col("c.kind", sqldb.Read, func(r *credentialRow) any { return &r.Kind }),
	sqldb.Col("c.about", sqldb.Read, func(r *credentialRow) any { return &r.about }),
	sqldb.Col("c.secret", sqldb.Read, func(r *credentialRow) any { return &r.secret }),
	sqldb.Col("c.version", sqldb.Read, func(r *credentialRow) any { return &r.Version }),
	sqldb.Col("c.created_at", sqldb.Read, func(r *credentialRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("c.updated_at", sqldb.Read, func(r *credentialRow) any { return sqldb.TimeAt(&r.UpdatedAt) }),
	sqldb.Col("c.archived_at", sqldb.Read, func(r *credentialRow) any { return sqldb.ZeroTimeAt(&r.ArchivedAt) }),
)

func (s *Store) scanCredential(sc sqldb.Scanner) (credentialRow, error) {
	r, err := credentialView.Row(sc)
	if err != nil {
		return r, err
	}
	var a credentialAbout
	err = s.db.OpenJSON(r.Tenant, r.about, credentialPlace(r.ID, "about"), &a)
	r.About, r.Auth = a.About, a.Auth
	return r, sqldb.About(err, "the description of credential", string(r.ID))
}

// held is a credential that is in use, with its secret.
func (s *Store) held(r *credentialRow) (h vault.Held, err error) {
	h.Credential = r.Credential
	return h, sqldb.About(s.db.OpenJSON(r.Tenant, r.secret, credentialPlace(r.ID, "secret"), &h.Secret), "the secret of credential", string(r.ID))
}

// sealed are the columns of a credential that its tenant has said.
func (s *Store) sealed(c *vault.Credential, secret *vault.Secret) (said, hidden []byte, err error) {
	if said, err = s.db.SealJSON(c.Tenant, credentialAbout{c.About, c.Auth}, credentialPlace(c.ID, "about")); err == nil {
		hidden, err = s.db.SealJSON(c.Tenant, secret, credentialPlace(c.ID, "secret"))
	}
	return said, hidden, err
}

// mark is the column identity of what a credential of a tenant is for.
func (s *Store) mark(t tenant.ID, identity string) []byte {
	return s.db.Seal.Sum([]byte(t+"\x00"+identity), "vault identity")
}

func (s *Store) Add(ctx context.Context, c *vault.Credential, secret vault.Secret, events ...tenant.PolicyEvent) error {
	identity, err := c.Identity()
	if err != nil {
		return err
	}
	said, hidden, err := s.sealed(c, &secret)
	if err != nil {
		return err
	}
	err = s.transact(ctx, "add a credential", c.Tenant, func(t *sqldb.Tx, now time.Time) error {
		v, err := s.get(ctx, t, c.Tenant, c.Vault)
		if err != nil {
			return err
		}
		if v.Archived() {
			return vault.ErrArchived
		}
		var all, used, same int
		if err := t.Row(ctx, `SELECT COUNT(*), COUNT(CASE WHEN archived_at IS NULL THEN 1 END), COUNT(CASE WHEN archived_at IS NULL AND identity = ? THEN 1 END) FROM vault_credentials WHERE vault = ?`,
			s.mark(c.Tenant, identity), string(c.Vault)).Scan(&all, &used, &same); err != nil {
			return err
		}
		if same > 0 {
			return vault.ErrTaken
		}
		if err := vault.RoomFor(all, used); err != nil {
			return err
		}
		c.Version, c.CreatedAt, c.UpdatedAt, c.ArchivedAt = 1, now, now, time.Time{}
		if _, err := t.Exec(ctx, `INSERT INTO vault_credentials (id, vault, kind, identity, about, secret, version, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?)`,
			string(c.ID), string(c.Vault), string(c.Kind), s.mark(c.Tenant, identity), said, hidden, sqldb.Micros(now), sqldb.Micros(now)); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
	return err
}

func (s *Store) Credential(ctx context.Context, t tenant.ID, v vault.ID, id vault.CredentialID) (*vault.Credential, error) {
	r, err := s.credential(ctx, s.db.Read, t, v, id)
	return &r.Credential, s.db.Read.Wrap("get a credential", err)
}

func (s *Store) credential(ctx context.Context, q sqldb.Querier, t tenant.ID, v vault.ID, id vault.CredentialID) (credentialRow, error) {
	r, err := s.scanCredential(q.Row(ctx, `SELECT `+credentialView.Selected+credentialFrom+` AND v.id = ? AND c.id = ?`, t, string(v), string(id)))
	if err == sql.ErrNoRows {
		err = vault.ErrNoCredential
	}
	return r, err
}

func (s *Store) Credentials(ctx context.Context, t tenant.ID, v vault.ID, f vault.Filter) (page []vault.Credential, next string, err error) {
	if _, err := s.Get(ctx, t, v); err != nil {
		return nil, "", err
	}
	query := `SELECT ` + credentialView.Selected + credentialFrom + ` AND v.id = ?`
	if !f.Archived {
		query += ` AND c.archived_at IS NULL`
	}
	all, next, err := sqldb.PageOf(ctx, s.db, sqldb.Page(f.Page), "vault_credentials/"+string(v), query, "c.seq", []any{t, string(v)}, s.scanCredential, func(r *credentialRow) int64 { return r.seq })
	for i := range all {
		page = append(page, all[i].Credential)
	}
	return page, next, s.db.Read.Wrap("list credentials", err)
}

func (s *Store) Change(ctx context.Context, t tenant.ID, v vault.ID, id vault.CredentialID, change func(*vault.Credential, *vault.Secret) error, events ...tenant.PolicyEvent) (*vault.Credential, error) {
	var h vault.Held
	err := s.transact(ctx, "change a credential", t, func(tx *sqldb.Tx, now time.Time) error {
		r, err := s.credential(ctx, tx, t, v, id)
		if err != nil {
			return err
		}
		if r.Archived() {
			return vault.ErrCredentialArchived
		}
		if h, err = s.held(&r); err != nil {
			return err
		}
		if err := change(&h.Credential, &h.Secret); err != nil {
			return err
		}
		said, hidden, err := s.sealed(&h.Credential, &h.Secret)
		if err != nil {
			return err
		}
		h.Version, h.UpdatedAt = r.Version+1, now
		if _, err := tx.Exec(ctx, `UPDATE vault_credentials SET about = ?, secret = ?, version = ?, leased = 0, updated_at = ? WHERE id = ?`, said, hidden, h.Version, sqldb.Micros(now), string(id)); err != nil {
			return err
		}
		return policydb.Insert(ctx, tx, events...)
	})
	return &h.Credential, err
}

func (s *Store) ArchiveCredential(ctx context.Context, t tenant.ID, v vault.ID, id vault.CredentialID, events ...tenant.PolicyEvent) (*vault.Credential, error) {
	var r credentialRow
	err := s.transact(ctx, "archive a credential", t, func(tx *sqldb.Tx, now time.Time) (err error) {
		if r, err = s.credential(ctx, tx, t, v, id); err != nil || r.Archived() {
			return err
		}
		r.Version, r.ArchivedAt, r.UpdatedAt = r.Version+1, now, now
		if _, err := tx.Exec(ctx, `UPDATE vault_credentials SET archived_at = ?, updated_at = ?, secret = NULL, version = ? WHERE id = ?`, sqldb.Micros(now), sqldb.Micros(now), r.Version, string(id)); err != nil {
			return err
		}
		return policydb.Insert(ctx, tx, events...)
	})
	return &r.Credential, err
}

func (s *Store) DeleteCredential(ctx context.Context, t tenant.ID, v vault.ID, id vault.CredentialID, events ...tenant.PolicyEvent) error {
	return s.transact(ctx, "delete a credential", t, func(tx *sqldb.Tx, _ time.Time) error {
		if _, err := s.credential(ctx, tx, t, v, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM vault_credentials WHERE id = ?`, string(id)); err != nil {
			return err
		}
		return policydb.Insert(ctx, tx, events...)
	})
}

func (s *Store) ForServer(ctx context.Context, t tenant.ID, of []vault.ID, url string) (*vault.Held, error) {
	identity, err := vault.ServerIdentity(url)
	if err != nil || len(of) == 0 {
		return nil, err
	}
	all, err := s.used(ctx, t, of, ` AND c.identity = ?`, s.mark(t, identity))
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

func (s *Store) Hosts(ctx context.Context, t tenant.ID, of []vault.ID) (out []vault.Held, err error) {
	if len(of) == 0 {
		return nil, nil
	}
	all, err := s.used(ctx, t, of, ` AND c.kind = ?`, string(vault.HostSecret))
	seen := map[string]bool{}
	for i := range all {
		if name := all[i].Auth.Variable; !seen[name] {
			seen[name] = true
			out = append(out, all[i])
		}
	}
	return out, err
}

// used are credentials of vaults that are in use, in the order of the vaults.
func (s *Store) used(ctx context.Context, t tenant.ID, of []vault.ID, which string, arg any) ([]vault.Held, error) {
	args := []any{t}
	for _, id := range of {
		args = append(args, string(id))
	}
	all, err := sqldb.Select(ctx, s.db.Read, s.scanCredential, `SELECT `+credentialView.Selected+credentialFrom+` AND v.id IN (?`+strings.Repeat(", ?", len(of)-1)+`) AND v.archived_at IS NULL AND c.archived_at IS NULL`+which+` ORDER BY c.seq`, append(args, arg)...)
	if err != nil {
		return nil, s.db.Read.Wrap("find credentials", err)
	}
	var out []vault.Held
	for _, id := range of {
		for i := range all {
			if all[i].Vault != id {
				continue
			}
			h, err := s.held(&all[i])
			if err != nil {
				return nil, err
			}
			out = append(out, h)
		}
	}
	return out, nil
}

func (s *Store) Lease(ctx context.Context, c *vault.Credential, d time.Duration) (got bool, err error) {
	err = s.transact(ctx, "lease a credential", c.Tenant, func(t *sqldb.Tx, now time.Time) error {
		n, err := t.Exec(ctx, `UPDATE vault_credentials SET leased = ? WHERE id = ? AND version = ? AND (leased < ? OR CAST(? AS BIGINT) = 0) AND archived_at IS NULL`, sqldb.Micros(now.Add(d)), string(c.ID), c.Version, sqldb.Micros(now), int64(d))
		got = n > 0
		return err
	})
	return got, err
}

var _ vault.Store = (*Store)(nil)
