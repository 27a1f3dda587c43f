package config

// Alone reports whether this server has the only gateway and the only executor of its installation,
// because its NATS server runs in this process and opens no port. Only a server of the role all can be
// alone. An execution that this executor
// does not know is lost then, and jobs need not wait for other executors.
//
// A database does not change this: while one server is alone, no other server can start on the same
// database.
func (c *Config) Alone() bool { return c.NATS == "" }

// OwnRecords reports whether the records are in a SQLite file of the data folder, whose lock keeps
// other servers out. It differs from Alone: a PostgreSQL database outlives the data folder, so its
// records may name servers of other folders, and a server must look for them before it starts.
func (c *Config) OwnRecords() bool { return c.Database == "" }
