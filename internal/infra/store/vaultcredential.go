package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
)

const (
	credentialColumns = `c.seq, c.id, c.vault, v.tenant, c.kind, c.about, c.secret, c.version, c.created_at, c.updated_at, c.archived_at`
	credentialFrom    = ` FROM vault_credentials c JOIN vaults v ON v.id = c.vault WHERE v.tenant = ?`
)

func credentialPlace(id vault.CredentialID, part string) string {
	return fmt.Sprintf("vault_credentials/%s/%s", part, id)
}

// credentialAbout is what is shown of a credential.
type credentialAbout struct {
	About vault.About
	Auth  vault.Auth
}

// credentialRow is a credential as it is stored, with its place in lists.
type credentialRow struct {
	vault.Credential
	seq    int64
	secret []byte
}

func (s *vaults) scanCredential(sc scanner) (r credentialRow, err error) {
	var sealed []byte
	var created, updated int64
	var archived sql.NullInt64
	c := &r.Credential
	if err := sc.Scan(&r.seq, &c.ID, &c.Vault, &c.Tenant, &c.Kind, &sealed, &r.secret, &c.Version, &created, &updated, &archived); err != nil {
		return r, err
	}
	c.CreatedAt, c.UpdatedAt = instant(created), instant(updated)
	if archived.Valid {
		c.ArchivedAt = instant(archived.Int64)
	}
	var a credentialAbout
	err = s.open(c.Tenant, sealed, credentialPlace(c.ID, "about"), &a)
	c.About, c.Auth = a.About, a.Auth
	return r, about(err, "the description of credential", string(c.ID))
}

// held is a credential that is in use, with its secret.
func (s *vaults) held(r *credentialRow) (h vault.Held, err error) {
	h.Credential = r.Credential
	return h, about(s.open(r.Tenant, r.secret, credentialPlace(r.ID, "secret"), &h.Secret), "the secret of credential", string(r.ID))
}

// sealed are the columns of a credential that its tenant has said.
func (s *vaults) sealed(c *vault.Credential, secret *vault.Secret) (said, hidden []byte, err error) {
	if said, err = s.seal(c.Tenant, credentialAbout{c.About, c.Auth}, credentialPlace(c.ID, "about")); err == nil {
		hidden, err = s.seal(c.Tenant, secret, credentialPlace(c.ID, "secret"))
	}
	return said, hidden, err
}

// mark is the column identity of what a credential of a tenant is for.
func (s *vaults) mark(t tenant.ID, identity string) []byte {
	return s.db.seal.Sum([]byte(t+"\x00"+identity), "vault identity")
}

func (s *vaults) Add(ctx context.Context, c *vault.Credential, secret vault.Secret, events ...tenant.PolicyEvent) error {
	identity, err := c.Identity()
	if err != nil {
		return err
	}
	said, hidden, err := s.sealed(c, &secret)
	if err != nil {
		return err
	}
	err = s.transact(ctx, "add a credential", c.Tenant, func(t *tx, now time.Time) error {
		v, err := s.get(ctx, t, c.Tenant, c.Vault)
		if err != nil {
			return err
		}
		if v.Archived() {
			return vault.ErrArchived
		}
		var all, used, same int
		if err := t.row(ctx, `SELECT COUNT(*), COUNT(CASE WHEN archived_at IS NULL THEN 1 END), COUNT(CASE WHEN archived_at IS NULL AND identity = ? THEN 1 END) FROM vault_credentials WHERE vault = ?`,
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
		if _, err := t.exec(ctx, `INSERT INTO vault_credentials (id, vault, kind, identity, about, secret, version, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?)`,
			string(c.ID), string(c.Vault), string(c.Kind), s.mark(c.Tenant, identity), said, hidden, micros(now), micros(now)); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	return err
}

func (s *vaults) Credential(ctx context.Context, t tenant.ID, v vault.ID, id vault.CredentialID) (*vault.Credential, error) {
	r, err := s.credential(ctx, s.db.read, t, v, id)
	return &r.Credential, s.db.read.wrap("get a credential", err)
}

func (s *vaults) credential(ctx context.Context, q querier, t tenant.ID, v vault.ID, id vault.CredentialID) (credentialRow, error) {
	r, err := s.scanCredential(q.row(ctx, `SELECT `+credentialColumns+credentialFrom+` AND v.id = ? AND c.id = ?`, t, string(v), string(id)))
	if err == sql.ErrNoRows {
		err = vault.ErrNoCredential
	}
	return r, err
}

func (s *vaults) Credentials(ctx context.Context, t tenant.ID, v vault.ID, f vault.Filter) (page []vault.Credential, next string, err error) {
	if _, err := s.Get(ctx, t, v); err != nil {
		return nil, "", err
	}
	query := `SELECT ` + credentialColumns + credentialFrom + ` AND v.id = ?`
	if !f.Archived {
		query += ` AND c.archived_at IS NULL`
	}
	all, next, err := pageOf(ctx, s.db, skill.Page(f.Page), "vault_credentials/"+string(v), query, "c.seq", []any{t, string(v)}, s.scanCredential, func(r *credentialRow) int64 { return r.seq })
	for i := range all {
		page = append(page, all[i].Credential)
	}
	return page, next, s.db.read.wrap("list credentials", err)
}

func (s *vaults) Change(ctx context.Context, t tenant.ID, v vault.ID, id vault.CredentialID, change func(*vault.Credential, *vault.Secret) error, events ...tenant.PolicyEvent) (*vault.Credential, error) {
	var h vault.Held
	err := s.transact(ctx, "change a credential", t, func(tx *tx, now time.Time) error {
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
		if _, err := tx.exec(ctx, `UPDATE vault_credentials SET about = ?, secret = ?, version = ?, leased = 0, updated_at = ? WHERE id = ?`, said, hidden, h.Version, micros(now), string(id)); err != nil {
			return err
		}
		return insertEvents(ctx, tx, events)
	})
	return &h.Credential, err
}

func (s *vaults) ArchiveCredential(ctx context.Context, t tenant.ID, v vault.ID, id vault.CredentialID, events ...tenant.PolicyEvent) (*vault.Credential, error) {
	var r credentialRow
	err := s.transact(ctx, "archive a credential", t, func(tx *tx, now time.Time) (err error) {
		if r, err = s.credential(ctx, tx, t, v, id); err != nil || r.Archived() {
			return err
		}
		r.Version, r.ArchivedAt, r.UpdatedAt = r.Version+1, now, now
		if _, err := tx.exec(ctx, `UPDATE vault_credentials SET archived_at = ?, updated_at = ?, secret = NULL, version = ? WHERE id = ?`, micros(now), micros(now), r.Version, string(id)); err != nil {
			return err
		}
		return insertEvents(ctx, tx, events)
	})
	return &r.Credential, err
}

func (s *vaults) DeleteCredential(ctx context.Context, t tenant.ID, v vault.ID, id vault.CredentialID, events ...tenant.PolicyEvent) error {
	return s.transact(ctx, "delete a credential", t, func(tx *tx, _ time.Time) error {
		if _, err := s.credential(ctx, tx, t, v, id); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `DELETE FROM vault_credentials WHERE id = ?`, string(id)); err != nil {
			return err
		}
		return insertEvents(ctx, tx, events)
	})
}

func (s *vaults) ForServer(ctx context.Context, t tenant.ID, of []vault.ID, url string) (*vault.Held, error) {
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

func (s *vaults) Hosts(ctx context.Context, t tenant.ID, of []vault.ID) (out []vault.Held, err error) {
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
func (s *vaults) used(ctx context.Context, t tenant.ID, of []vault.ID, which string, arg any) ([]vault.Held, error) {
	args := []any{t}
	for _, id := range of {
		args = append(args, string(id))
	}
	rows, err := s.db.read.rows(ctx, `SELECT `+credentialColumns+credentialFrom+` AND v.id IN (?`+strings.Repeat(", ?", len(of)-1)+`) AND v.archived_at IS NULL AND c.archived_at IS NULL`+which+` ORDER BY c.seq`, append(args, arg)...)
	all, err := collect(rows, err, s.scanCredential)
	if err != nil {
		return nil, s.db.read.wrap("find credentials", err)
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

func (s *vaults) Lease(ctx context.Context, c *vault.Credential, d time.Duration) (got bool, err error) {
	err = s.transact(ctx, "lease a credential", c.Tenant, func(t *tx, now time.Time) error {
		n, err := t.exec(ctx, `UPDATE vault_credentials SET leased = ? WHERE id = ? AND version = ? AND (leased < ? OR CAST(? AS BIGINT) = 0) AND archived_at IS NULL`, micros(now.Add(d)), string(c.ID), c.Version, micros(now), int64(d))
		got = n > 0
		return err
	})
	return got, err
}

var _ vault.Store = (*vaults)(nil)
