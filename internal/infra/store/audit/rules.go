package audit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/infra/store/migrations"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Triggers and functions of the audit trail in the migrations. The first group is the name.
var (
	triggersInSQL  = regexp.MustCompile(`(?s)CREATE TRIGGER (audit_\w+).*?;`)
	bodiesInSQL    = regexp.MustCompile(`(?s)CREATE TRIGGER (audit_\w+).*?\nEND;`)
	functionsInSQL = regexp.MustCompile(`(?s)CREATE FUNCTION (\w+)\(.*?\$\$(.*?)\$\$`)
)

// rule is a part of the schema that keeps the trail from being changed.
type rule struct{ name, text string }

// rules returns the rules that the schema creates. If a later migration changes one, add its file here.
func rules(postgres bool) ([]rule, error) {
	var out []rule
	read := func(file string, pattern *regexp.Regexp, text func(match []string) string) error {
		sql, err := migrations.Files.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range pattern.FindAllStringSubmatch(string(sql), -1) {
			out = append(out, rule{m[1], text(m)})
		}
		return nil
	}
	whole := func(m []string) string { return words(m[0]) }
	body := func(m []string) string { return words(m[2]) }
	if !postgres {
		return out, read("sqlite/00001_schema.sql", bodiesInSQL, whole)
	}
	const schema = "postgres/00001_schema.sql"
	err := cmp.Or(read(schema, functionsInSQL, body),
		// PostgreSQL lists the events of a trigger in a different order.
		read(schema, triggersInSQL, func(m []string) string { return sorted(m[0]) }))
	return out, err
}

// knownRules are the rules of each engine, read once.
var knownRules = map[bool]func() ([]rule, error){
	false: sync.OnceValues(func() ([]rule, error) { return rules(false) }),
	true:  sync.OnceValues(func() ([]rule, error) { return rules(true) }),
}

// Rules returns the names of rules about the trail that are missing, disabled or changed in the
// database.
func (s *Store) Rules(ctx context.Context) ([]string, error) {
	want, err := knownRules[s.db.Write.Postgres]()
	if err != nil {
		return nil, fmt.Errorf("store: read the rules of the audit trail: %w", err)
	}
	there, err := rulesThere(ctx, s.db.Read)
	if err != nil {
		return nil, s.db.Read.Wrap("read the rules of the audit trail", err)
	}
	wrong := map[string]bool{}
	for _, r := range want {
		if there[r.name] != r.text {
			wrong[r.name] = true
		}
	}
	return slices.Sorted(maps.Keys(wrong)), nil
}

// rulesThere reads the rules of the database.
func rulesThere(ctx context.Context, p *sqldb.Pool) (map[string]string, error) {
	out := map[string]string{}
	read := func(query string, text func(string) string) error {
		rows, err := p.Rows(ctx, query)
		_, err = sqldb.Collect(rows, err, func(sc sqldb.Scanner) (struct{}, error) {
			var name, sql string
			err := sc.Scan(&name, &sql)
			out[name] = text(sql)
			return struct{}{}, err
		})
		return err
	}
	if !p.Postgres {
		return out, read(`SELECT name, sql FROM sqlite_master WHERE type = 'trigger'`, func(sql string) string { return words(sql + ";") })
	}
	return out, cmp.Or(
		// Atoll's functions take no arguments.
		read(`SELECT p.proname::text, p.prosrc FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace AND p.pronargs = 0`, words),
		read(`SELECT t.tgname::text, pg_get_triggerdef(t.oid, true) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
			WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND c.relnamespace = current_schema()::regnamespace`,
			func(sql string) string { return sorted(sql + ";") }))
}

// words joins the lines of a text.
func words(sql string) string { return strings.Join(strings.Fields(sql), " ") }

// sorted returns the words of a text in alphabetical order.
func sorted(sql string) string {
	all := strings.Fields(sql)
	slices.Sort(all)
	return strings.Join(all, " ")
}
