package sqldb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// openPostgres opens a pool of connections. Connections that died with their
// server are replaced when they are next used.
func openPostgres(ctx context.Context, c Config) (*Pool, error) {
	config, err := pgx.ParseConfig(c.URL)
	if err != nil {
		return nil, err // pgx leaves the password out
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "atoll"
	}
	// Nothing here takes long; what does is a lock that another session left.
	if config.RuntimeParams["idle_in_transaction_session_timeout"] == "" {
		config.RuntimeParams["idle_in_transaction_session_timeout"] = "60000"
	}
	db := stdlib.OpenDB(*config)
	connections := c.Connections
	if connections <= 0 {
		connections = DefaultConnections
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("%s: %w", config.Host, err)
	}
	return newPool(db, true), nil
}
