// Package config is where every setting of Atoll is declared, documented,
// loaded and checked, once.
//
// A setting comes from, in rising order of precedence: its default, the
// configuration file, the environment, a flag. Its names follow from each
// other: pool_size in the file is ATOLL_POOL_SIZE in the environment and
// --pool-size as a flag. docs/reference/settings.md is written from the tags here.
package config

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Config holds every setting. The tags are the documentation: default and help
// are shown as they are; enum lists the only values; a secret is never printed.
type Config struct {
	Loopback bool `name:"-"` // whether listen is on loopback; found out by Load

	Listen         string        `group:"Server" name:"listen" default:"127.0.0.1:8080" help:"Address and port of the HTTP interface. Beyond loopback the development key is refused."`
	DataDir        string        `group:"Server" name:"data_dir" default:"" shown:"/var/lib/atoll as root, otherwise $XDG_DATA_HOME/atoll or ~/.local/share/atoll" help:"Folder for images, sandboxes and state. At most one server uses it."`
	StateDir       string        `group:"Server" name:"state_dir" default:"" shown:"in memory as root: below /run/atoll or /dev/shm; otherwise, and with runtime: oci, data_dir/state" help:"Folder for data that a restart of the machine makes useless: records, pipes and journals of running sandboxes. On a disk, these files can cost a tenth of all processor time. All processes with the same data_dir must use the same state_dir."`
	DevKey         string        `group:"Server" name:"dev_key" default:"" shown:"made at the first start, kept in data_dir/dev-key" secret:"true" help:"A fixed key of the tenant dev, for trying things out. Refused when listening beyond loopback."`
	Role           string        `group:"Server" name:"role" default:"all" enum:"all,gateway,executor" help:"Which part of Atoll this server is. A gateway answers clients and keeps records, an executor runs sandboxes, and all does both. Gateways and executors need nats, blobs and certificates for the connections between servers."`
	ShutdownGrace  time.Duration `group:"Server" name:"shutdown_grace" default:"30s" help:"How long a shutdown waits for running executions before on_exit applies to them."`
	OnExit         string        `group:"Server" name:"on_exit" default:"detach" enum:"detach,destroy" help:"Fate of sandboxes when the server stops. detach leaves named sandboxes and those that run programs to the next server; destroy deletes them all. Pooled ones are always deleted."`
	Dev            string        `group:"Server" name:"dev" default:"off" enum:"on,off" help:"Development mode, for a server that listens on loopback: models, MCP servers and webhooks of the tenant dev may be on this machine's loopback, also by plain HTTP. --dev alone means on."`
	LogLevel       string        `group:"Server" name:"log_level" default:"info" enum:"debug,info,warn,error" help:"Least severe messages to log."`
	LogFormat      string        `group:"Server" name:"log_format" default:"text" enum:"text,json" help:"How log lines on stderr look."`
	TLSCert        string        `group:"Server" name:"tls_cert" default:"" shown:"none: plain HTTP" help:"PEM file with the certificate and its chain; read again when it changes. Needs tls_key."`
	TLSKey         string        `group:"Server" name:"tls_key" default:"" shown:"none" help:"PEM file with the certificate's private key."`
	TrustedProxies List          `group:"Server" name:"trusted_proxies" default:"" shown:"none" help:"Addresses or CIDRs of proxies whose proxy_header says where requests come from, separated by commas."`
	ProxyHeader    string        `group:"Server" name:"proxy_header" default:"x-forwarded" enum:"x-forwarded,forwarded" help:"Which header trusted_proxies write: X-Forwarded-For, or the standard Forwarded."`
	PreviewURL     string        `group:"Server" name:"preview_url" default:"" shown:"http://*.localhost with the port of listen, https with a certificate" help:"Where browsers reach servers in sandboxes: a URL in whose host * stands for the name of each, such as https://*.preview.example.com. Every name below that domain must lead to this server, and the domain must not be that of the API or of anything else."`
	MCPIdle        time.Duration `group:"Server" name:"mcp_idle" default:"24h" help:"How long a session of an MCP client is kept without a request."`
	CORSOrigins    List          `group:"Server" name:"cors_origins" default:"" shown:"none" help:"Origins of web pages that may call what is below /v1 with a token, such as https://app.example.com, separated by commas; * for all. Pages cannot call /v1/admin."`
	MCPOrigins     List          `group:"Server" name:"mcp_origins" default:"" shown:"none" help:"Origins of web pages that may call /mcp, such as https://console.example, separated by commas."`
	Cloudflare     string        `group:"Server" name:"cloudflare" default:"off" enum:"on,off" help:"Whether the protocol of Cloudflare's sandbox bridge is served below /v1/sandbox, for clients such as the one of openai-agents."`
	E2B            string        `group:"Server" name:"e2b" default:"on" enum:"on,off" help:"Whether the server speaks E2B's protocol below /e2b, for the packages that E2B publishes."`
	TraceEndpoint  string        `group:"Server" name:"trace_endpoint" default:"" shown:"none" help:"URL that OpenTelemetry traces are sent to by OTLP over HTTP, such as http://127.0.0.1:4318. OTEL_EXPORTER_OTLP_ENDPOINT does the same."`

	StreamsPerToken  int `group:"Server" name:"streams_per_token" default:"32" help:"Streams that one token may have open on a server at a time: events of sessions and responses, output of executions and processes, terminals, watched folders. Above it the answer is 429. 0 for any number."`
	StreamsPerKey    int `group:"Server" name:"streams_per_key" default:"500" help:"Streams that one key may have open on a server at a time, those of its tokens included; above it the answer is 429. 0 for any number."`
	StreamsPerTenant int `group:"Server" name:"streams_per_tenant" default:"1000" help:"Streams that one tenant may have open on a server at a time; above it the answer is 429. 0 for the tenant's share of the server's connections."`

	NodeListen  string `group:"Connections between servers" name:"node_listen" default:"" shown:"none: only this server uses its named sandboxes" help:"Address and port where other servers of the installation reach this server's named sandboxes, such as 10.0.0.1:8443. Needs nats, node_cert, node_key and node_ca."`
	NodeAddress string `group:"Connections between servers" name:"node_address" default:"" shown:"node_listen" help:"Host and port that other servers connect to, where it is not node_listen. node_cert must be for this host."`
	NodeCert    string `group:"Connections between servers" name:"node_cert" default:"" shown:"none" help:"PEM file with this server's certificate, such as 'atoll node cert' writes; read for each connection."`
	NodeKey     string `group:"Connections between servers" name:"node_key" default:"" shown:"none" help:"PEM file with the private key of node_cert."`
	NodeCA      string `group:"Connections between servers" name:"node_ca" default:"" shown:"none" help:"PEM file with the certificate authority of the installation. The holder of any certificate of this authority can use every sandbox of this server, so use an authority that serves no other purpose."`

	Database     string        `group:"Records" name:"database" default:"" shown:"SQLite in data_dir/atoll.db" secret:"true" help:"Where records are kept: a postgres:// URL, or nothing for SQLite. Servers that share a database must share nats, blobs and volumes too; a server that does not refuses to start."`
	NATS         string        `group:"Records" name:"nats" default:"" shown:"embedded" secret:"true" help:"URL of a NATS server with JetStream, such as nats://10.0.0.5:4222, of version 2.11 or later, whose max_payload is at least 6 MiB; nothing for one in this process."`
	NATSCreds    string        `group:"Records" name:"nats_creds" default:"" shown:"none" help:"File with NATS credentials."`
	Blobs        string        `group:"Records" name:"blobs" default:"" shown:"data_dir/blobs" secret:"true" help:"Bucket for long outputs: a file://, s3://, gs:// or azblob:// URL."`
	SecretKey    string        `group:"Records" name:"secret_key" default:"" shown:"made at the first start, kept in data_dir/secret-key" secret:"true" help:"Key that secrets in the database are encrypted with: 64 hexadecimal digits. Without it the secrets cannot be read again."`
	Installation string        `group:"Records" name:"installation" default:"" shown:"asked of the gateways" help:"Id of the installation that an executor belongs to. Set it on executors if several installations share a NATS account."`
	LogSize      Size          `group:"Records" name:"log_size" default:"1GiB" help:"Disk space of the output logs that clients reconnect to; the oldest go first."`
	LogAge       time.Duration `group:"Records" name:"log_age" default:"24h" help:"How long an output log is kept."`
	LogPerRun    Size          `group:"Records" name:"log_per_run" default:"64MiB" help:"Size of one execution's output log; its oldest part goes first. The whole output is kept elsewhere."`
	KeepFor      time.Duration `group:"Records" name:"keep_executions" default:"720h" help:"How long records of executions and their outputs are kept."`
	KeepThreads  time.Duration `group:"Records" name:"keep_threads" default:"0s" help:"How long a thread that sets no time of its own is kept after it was saved last; 0 for ever."`
	KeepUsage    time.Duration `group:"Records" name:"keep_usage" default:"2160h" help:"How long the ledger keeps what each execution used. The sums by day, which budgets and usage of whole days are taken from, stay."`
	AuditRoom    time.Duration `group:"Records" name:"audit_room" default:"6h" help:"How many calls of a tenant may be on record, as the time in which the max_request_rate of its plan gives as many: with the default 10.8 million on free. Above that calls return 429 until the oldest rows of its audit trail expire. 0 for any number; a plan without that rate counts as one with 10000."`
	ThreadCache  Size          `group:"Records" name:"thread_cache" default:"10GiB" help:"Bytes of threads' home directories that this machine keeps ready after their executions; those used last stay. Threads themselves are in the blob store."`
	MinFreeDisk  Size          `group:"Records" name:"min_free_disk" default:"1GiB" help:"New executions, sandboxes, uploads and pulls of images return 503 while the disk of data_dir has less free."`

	DatabaseConnections int `group:"Records" name:"database_connections" default:"16" help:"Most connections that this server opens to PostgreSQL. Together the servers must stay below PostgreSQL's max_connections, 100 by default."`
	NATSReplicas        int `group:"Records" name:"nats_replicas" default:"0" shown:"1 for new streams; existing streams keep theirs" help:"Copies that a NATS cluster keeps of each stream, 1 to 5: 3 survives the loss of one NATS server. Needs nats."`

	WebhookAllow List   `group:"Webhooks" name:"webhook_allow" default:"" shown:"none" help:"Host names, addresses or CIDRs that webhooks may go to although they are private or this machine's, separated by commas."`
	WebhookCA    string `group:"Webhooks" name:"webhook_ca" default:"" shown:"the system's" help:"PEM file with certificate authorities to trust besides the system's. Atoll reads it at the start; 'atoll config set' replaces it while servers run."`

	ModelAllow    List          `group:"Models" name:"model_allow" default:"" shown:"none" help:"Host names, addresses or CIDRs where providers of models may be although they are private or this machine's, separated by commas, such as 127.0.0.1 for a server of models on this machine. They may be reached by plain HTTP."`
	ModelsFile    string        `group:"Models" name:"models_file" default:"" shown:"none" help:"YAML file that declares models, see models.md; read again when it, or a file with a key that it names, changes. Every gateway of an installation needs the same."`
	KeepResponses time.Duration `group:"Models" name:"keep_responses" default:"720h" help:"How long a response of /v1/responses is kept after its end, unless its request says store: false."`
	MCPAllow      List          `group:"Models" name:"mcp_allow" default:"" shown:"none" help:"Host names, addresses or CIDRs where MCP servers that responses name may be although they are private or this machine's, separated by commas. They may be reached by plain HTTP."`
	ModelRetryFor time.Duration `group:"Models" name:"model_retry_for" default:"2m" help:"How long a model is asked again after its provider answered 429, 529 or 5xx or broke off, with growing waits of up to 30 seconds, where the agent's retry_for_ms does not say. A waiting turn survives a restart. 0 ends it at the first failure."`
	MaxResponses  int           `group:"Models" name:"max_responses" default:"1000" help:"Responses of one tenant that may be in progress at a time; above it the answer is 429. 0 for any number."`

	MaxAgents        int `group:"Models" name:"max_agents" default:"1000" help:"Agents that a tenant may have, those that are archived not counted; above it the answer is 429. 0 for any number."`
	MaxAgentVersions int `group:"Models" name:"max_agent_versions" default:"10000" help:"Versions that all agents of a tenant may have together, also those that are archived, because they are kept; above it the answer is 429. 0 for any number. A version has at most 1 MiB."`

	MaxSessions int `group:"Models" name:"max_sessions" default:"10000" help:"Sessions that a tenant may have, also those that are archived; above it the answer is 429. 0 for any number."`

	ConfirmationTime time.Duration `group:"Models" name:"confirmation_time" default:"168h" help:"How long tool calls of sessions and responses wait for an answer before they are denied, where the agent's tool_policy does not say (confirm_within); 0 for ever."`
	MaxSkills        int           `group:"Models" name:"max_skills" default:"100" help:"Skills that a tenant may have, also those that are archived; above it the answer is 429. 0 for any number."`
	MaxSkillBytes    Size          `group:"Models" name:"max_skill_bytes" default:"256MiB" help:"Bytes that all versions of a tenant's skills may have together, packed; above it the answer is 429. 0 for any number."`

	MaxVaults    int  `group:"Models" name:"max_vaults" default:"10000" help:"Vaults that a tenant may have, also those that are archived; above it the answer is 429. 0 for any number."`
	MaxFiles     int  `group:"Models" name:"max_files" default:"10000" help:"Files that a tenant may have uploaded to /v1/files; above it the answer is 429. 0 for any number."`
	MaxFileBytes Size `group:"Models" name:"max_file_bytes" default:"10GiB" help:"Bytes that all uploaded files of a tenant may have together; above it the answer is 429. 0 for any number."`
	MaxFileSize  Size `group:"Models" name:"max_file_size" default:"500MiB" help:"Bytes that an uploaded file may have; above it the answer is 413. 0 for any number."`

	SearchProvider  string `group:"Web" name:"search_provider" default:"off" enum:"off,searxng,brave,tavily,http,mcp" help:"Provider of web searches for programs and models: a SearXNG server, Brave, Tavily, any server that answers as POST /v1/search does, or the tool of an MCP server. See docs/reference/web.md."`
	SearchURL       string `group:"Web" name:"search_url" default:"" shown:"the provider's own; none of searxng, http and mcp" help:"Base URL of search_provider; of http and mcp that of its endpoint. It may be private or this machine's, and is reached without a proxy."`
	SearchKeyFile   string `group:"Web" name:"search_key_file" default:"" shown:"none" help:"File with the key for search_provider, read at the start."`
	SearchTool      string `group:"Web" name:"search_tool" default:"" shown:"the one whose name has search in it" help:"Which tool of the MCP server searches, for the provider mcp."`
	PeopleProvider  string `group:"Web" name:"people_search_provider" default:"off" enum:"off,searxng,brave,tavily,http,mcp" help:"Provider of searches for people, with the same values as search_provider."`
	PeopleSearchURL string `group:"Web" name:"people_search_url" default:"" shown:"the provider's own; none of searxng, http and mcp" help:"Base URL of people_search_provider, in the form of search_url."`
	PeopleKeyFile   string `group:"Web" name:"people_search_key_file" default:"" shown:"none" help:"File with the key for people_search_provider, read at the start."`
	PeopleTool      string `group:"Web" name:"people_search_tool" default:"" shown:"the one whose name has search in it" help:"Which tool of the MCP server finds people, for the provider mcp."`
	FetchURL        string `group:"Web" name:"fetch_url" default:"off" enum:"off,on" help:"Whether programs and models may read pages of the web through the server."`
	FetchAllow      List   `group:"Web" name:"fetch_allow" default:"" shown:"none" help:"Host names, addresses or CIDRs where such pages may be although they are private or this machine's, separated by commas."`

	Volumes      string        `group:"Storage" name:"volumes" default:"" shown:"data_dir/volumes" secret:"true" help:"Where managed volumes are: a folder, which several executors must see at the same path, or a bucket: an s3://, gs:// or azblob:// URL, in which prefix=folder/ puts them below a folder."`
	StorageAllow List          `group:"Storage" name:"storage_allow" default:"" shown:"none" help:"Host names, addresses or CIDRs that connections to buckets may lead to although they are private or this machine's, separated by commas. They may use plain HTTP."`
	MountCache   Size          `group:"Storage" name:"mount_cache" default:"4GiB" help:"Disk space for files in mounted buckets that are being written, of all executions together. A program that needs more gets ENOSPC."`
	FlushTimeout time.Duration `group:"Storage" name:"flush_timeout" default:"5m" help:"How long Atoll may take to store the files that a program wrote to a mounted bucket, after the program has ended. Files that are not stored by then are lost, and the result says so."`

	NetworkAllow           List          `group:"Network" name:"network_allow" default:"" shown:"none" help:"Addresses or CIDRs, each with or without a port, that sandboxes may reach although they are private, where their policy holds the address too; separated by commas, such as 10.0.0.7:5432."`
	SandboxCA              string        `group:"Network" name:"sandbox_ca_bundle" default:"" shown:"none" help:"PEM file with certificates that sandboxes with a network trust besides their image's, such as those of a proxy that intercepts TLS. Atoll reads it at the start; 'atoll config set' replaces it while servers run."`
	PipIndex               string        `group:"Network" name:"pip_index" default:"" shown:"none" secret:"true" help:"URL of a Python package index, ending in /simple. Sandboxes with a network then install from it through the server, and need no rule for it."`
	NPMRegistry            string        `group:"Network" name:"npm_registry" default:"" shown:"none" secret:"true" help:"URL of an npm registry, which sandboxes use like pip_index."`
	AptArchive             string        `group:"Network" name:"apt_archive" default:"" shown:"none" secret:"true" help:"URL of a mirror of Debian's archive, such as http://mirror.example.com/debian: the folder that has dists and pool. apt of sandboxes with a network then asks the server in place of Debian's own hosts, and needs no rule for it."`
	AptSecurity            string        `group:"Network" name:"apt_security" default:"" shown:"apt_archive with -security at its end" secret:"true" help:"URL of a mirror of Debian's archive of security updates, for apt_archive."`
	Packages               List          `group:"Network" name:"packages" default:"*" help:"Packages that sandboxes may install from pip_index, npm_registry and apt_archive: names such as pip:requests, npm:left-pad, npm:@scope/*, apt:hello, or * for all; separated by commas. List their dependencies too."`
	PackageTime            time.Duration `group:"Network" name:"package_time" default:"10m" help:"How long installing the packages of an environment may take."`
	PackageSize            Size          `group:"Network" name:"package_size" default:"1GiB" help:"Size that the packages of an environment may add to its image. Atoll installs them in a sandbox with this size for them and again for temporary files, both in memory, and 1GiB more."`
	PackageImagesPerTenant int           `group:"Network" name:"package_images_per_tenant" default:"5" help:"Different sets of packages that the environments of one tenant may have; above it the answer is 429. 0 for any number."`
	PackageImages          int           `group:"Network" name:"package_images" default:"20" help:"Images with packages that this machine keeps, for all tenants together. Each takes as much disk space as the image and its packages. 0 for none: environments then have no packages."`
	MirrorAllow            List          `group:"Network" name:"mirror_allow" default:"" shown:"none" help:"Host names, addresses or CIDRs that links and redirects of pip_index, npm_registry and apt_archive may lead to although they are private or this machine's, separated by commas. The mirrors themselves need no entry."`

	PriceCPU    float64 `group:"Usage" name:"price_cpu_minute" default:"0.5" help:"Credits for a core and a minute. One credit is 60 seconds with one core and one GiB."`
	PriceGiB    float64 `group:"Usage" name:"price_gib_minute" default:"0.5" help:"Credits for a GiB of memory and a minute."`
	PriceOut    float64 `group:"Usage" name:"price_gib_out" default:"0" help:"Credits for a GiB that sandboxes send to the network."`
	PriceCall   float64 `group:"Usage" name:"price_call" default:"0" help:"Credits for an execution, whatever its length."`
	PriceSearch float64 `group:"Usage" name:"price_search" default:"0" help:"Credits for a web search or a search for people."`
	PriceFetch  float64 `group:"Usage" name:"price_fetch" default:"0" help:"Credits for a page that is read by fetch_url."`
	PriceWindow float64 `group:"Usage" name:"price_sandbox_window" default:"0" help:"US dollars for a window of 20 minutes in which responses use a sandbox."`

	PriceTools map[string]string `group:"Usage" name:"price_tools" default:"" shown:"none" help:"US dollars for a call of a tool by a response, by the names of usage.tool_calls_details, such as {\"web_search\": \"0.005\"}. In the environment and as a flag: a JSON object of strings."`

	MaxTimeout    time.Duration `group:"Executions" name:"max_timeout" default:"1h" help:"Longest timeout a request may ask for; above it the answer is 429."`
	MaxConcurrent int           `group:"Executions" name:"max_concurrent" default:"0" shown:"0 (8 a core)" help:"Executions that run at once; more wait in the queue."`
	MaxQueue      int           `group:"Executions" name:"max_queue" default:"1000" help:"Executions that wait; more return 503."`
	MaxOutput     Size          `group:"Executions" name:"max_output" default:"10MiB" help:"Bytes of stdout, and of stderr, that an answer holds. Atoll drops further output, and the answer says so."`
	TurnIdle      time.Duration `group:"Executions" name:"turn_idle" default:"10m" help:"How long the sandbox of an agent's turn waits for the next call of execute_code. The sandbox of a response stays at least until its window of 20 minutes ends."`
	PoolSize      PoolSize      `group:"Executions" name:"pool_size" default:"auto" help:"Warm sandboxes kept ready for each language of image, and as many for Python with the image's preloads. auto: for Python 50 for each core, at most 5 for each GiB of memory, between 2 and 128; for each of the others 3 for each core, at most 1 for each 2 GiB, between 2 and 16. Demand raises each up to five times, within pool_memory. 0 makes every sandbox when it is asked for."`
	PoolMemory    Size          `group:"Executions" name:"pool_memory" default:"0" shown:"0 (an eighth of the machine's memory)" help:"Memory up to which demand may raise the number of warm sandboxes of all environments together. The sandboxes of pool_size are always kept."`

	Image               string            `group:"Environment" name:"image" default:"default" help:"Image that executions run in: a name from 'atoll image list', or host for this machine's own /usr."`
	BaseTemplates       map[string]string `group:"Environment" name:"base_templates" default:"" shown:"tpl_code_interpreter is image" help:"Which image each base_template of /v1/environments is. In the environment and as a flag: a JSON object, such as {\"tpl_data\": \"tools\"}."`
	ImageSource         string            `group:"Environment" name:"image_source" default:"" shown:"atoll-image-default-ARCH.tar.zst beside atoll or in ../share/atoll/images, if it is there" help:"File or URL of a prebuilt default image, as 'atoll image export' writes it. It is imported when the default image is missing. #sha256= and 64 hexadecimal digits after it is the checksum of the file, which a URL with http must have."`
	ImageMirror         string            `group:"Environment" name:"image_mirror" default:"" shown:"Debian's own" help:"URL of the Debian mirror that the default image is built from."`
	ImageVariants       string            `group:"Environment" name:"image_variants" default:"build" enum:"build,import,off" help:"Reaction when an environment, a sandbox or a skill needs a variant of the default image, such as default+browser, that this server lacks. build imports a prebuilt one, or else builds it from Debian's packages, in the background. import only imports. off makes none: build it with 'atoll image build --with'."`
	ImageVariantSources map[string]string `group:"Environment" name:"image_variant_sources" default:"" shown:"atoll-image-VARIANT-ARCH.tar.zst beside atoll or in ../share/atoll/images, if it is there" help:"File or URL of each prebuilt variant, such as {\"default+browser\": \"https://mirror.example.com/browser.tar.zst#sha256=…\"}, as image_source has it. In the environment and as a flag: a JSON object."`
	ImageVariantTime    time.Duration     `group:"Environment" name:"image_variant_time" default:"30m" help:"How long importing or building a variant may take. After that it fails and is tried again later."`
	EnvVars             map[string]string `group:"Environment" name:"env_vars" default:"" shown:"none" help:"Variables set for every execution; a request's own win. In the environment and as a flag: a JSON object."`
	CPU                 float64           `group:"Environment" name:"cpu" default:"1" help:"Cores a sandbox may use."`
	Memory              Size              `group:"Environment" name:"memory" default:"512MiB" help:"Memory of a sandbox: programs, page cache and in-memory files together."`
	Processes           int               `group:"Environment" name:"processes" default:"256" help:"Processes and threads in a sandbox."`
	OpenFiles           int               `group:"Environment" name:"open_files" default:"1024" help:"Open files of one process."`
	RootSize            Size              `group:"Environment" name:"root_size" default:"128MiB" shown:"128MiB; a quarter of a memory too small for it" help:"Size of the writable layer over the image. Counts as memory, like the next two."`
	TmpSize             Size              `group:"Environment" name:"tmp_size" default:"128MiB" shown:"128MiB; a quarter of a memory too small for it" help:"Size of /tmp."`
	ShmSize             Size              `group:"Environment" name:"shm_size" default:"64MiB" shown:"64MiB; an eighth of a memory too small for it" help:"Size of /dev/shm."`
	Inodes              int               `group:"Environment" name:"inodes" default:"100000" help:"Files in each of root, /tmp and /dev/shm."`

	SandboxSleepAfter time.Duration     `group:"Named sandboxes" name:"sandbox_sleep_after" default:"10m" help:"How long a named sandbox that sets no time of its own stays awake without use."`
	SandboxFrozen     time.Duration     `group:"Named sandboxes" name:"sandbox_frozen" default:"5m" help:"How long a named sandbox that fell asleep keeps its memory, frozen, before that goes to disk. Waking takes milliseconds before, and about a hundred after."`
	StandbyKernels    int               `group:"Named sandboxes" name:"standby_kernels" default:"5" help:"Kernels that are kept started for named sandboxes which wake from disk and for forks: two where compatible sandboxes sleep on disk, and for 10 minutes after a fork as many as it made; never more than this together. Each takes 25 MB of memory, and makes a wake or fork 50 ms faster. 0 for none."`
	CheckpointDisk    Size              `group:"Named sandboxes" name:"checkpoint_disk" default:"50GiB" help:"Disk space that the checkpoints of sleeping named sandboxes may take together. A sandbox whose checkpoint would exceed it, or leave less than min_free_disk, sleeps in memory instead. 0 for no bound."`
	SandboxStored     time.Duration     `group:"Named sandboxes" name:"sandbox_stored" default:"24h" help:"How long a named sandbox that sleeps on disk stays there, before it is moved to the blob store, compressed and encrypted; its next use brings it back. Negative for good."`
	SandboxDisk       Size              `group:"Named sandboxes" name:"sandbox_disk" default:"10GiB" help:"Files of a named sandbox in its home, /tmp and /var/tmp together; a plan's own bound may be less. 0 for no bound."`
	MaxOnMachine      int               `group:"Named sandboxes" name:"max_machine_sandboxes" default:"1000" help:"Named sandboxes that this machine holds for all tenants together, sleeping ones too. A call that needs one more returns 503. 0 for no bound. The plan's max_sandboxes limits one tenant."`
	KeepSandboxes     time.Duration     `group:"Named sandboxes" name:"keep_sandboxes" default:"168h" help:"How long a named sandbox that sleeps or is lost is kept without being used; 0 for ever."`
	ImagePull         string            `group:"Named sandboxes" name:"image_pull" default:"never" enum:"never,missing" help:"Reaction to a request for a named sandbox with a missing image: never returns an error that says how to import it, missing imports it where image_pull_allow lets it, while the caller waits."`
	ImagePullAllow    List              `group:"Named sandboxes" name:"image_pull_allow" default:"" shown:"none" help:"Repositories that image_pull may import from, such as docker.io/library/python, or all below one, such as registry.example.com/team/*, separated by commas."`
	ImagePullRedirect List              `group:"Named sandboxes" name:"image_pull_redirect_allow" default:"" shown:"none" help:"Host names, addresses or CIDRs that registries of image_pull may redirect to although they are private or this machine's, separated by commas. The registries themselves need no entry."`
	ImagePullSize     Size              `group:"Named sandboxes" name:"image_pull_size" default:"4GiB" help:"Files of an image that image_pull imports, together."`
	ImagePullTimeout  time.Duration     `group:"Named sandboxes" name:"image_pull_timeout" default:"10m" help:"How long image_pull may take for an image."`
	KeepSnapshots     time.Duration     `group:"Named sandboxes" name:"keep_snapshots" default:"0s" help:"How long a snapshot that sets no time of its own is kept; 0 for ever."`
	ImageAliases      map[string]string `group:"Named sandboxes" name:"image_aliases" default:"" shown:"node:* and python:* are image, where its version is at least that asked for" help:"Which image is meant by what a sandbox is asked to have, such as {\"node:22\": \"tools\", \"postgres:*\": \"db\"}. In the environment and as a flag: a JSON object."`

	Runtime    string `group:"Runtime" name:"runtime" default:"gvisor" enum:"gvisor,oci" help:"Runtime of sandboxes. gvisor gives each its own kernel; oci drives oci_runtime, whose boundary is the host's kernel and so weaker."`
	Runsc      string `group:"Runtime" name:"runsc" default:"" shown:"atoll-runsc beside atoll or in ../libexec/atoll" help:"Path of gVisor's runtime."`
	OCIRuntime string `group:"Runtime" name:"oci_runtime" default:"crun" help:"Name or path of the OCI runtime, with runtime: oci."`
	Guest      string `group:"Runtime" name:"guest" default:"" shown:"atoll-guest beside atoll or in ../libexec/atoll" help:"Path of the guest's binary, which is process 1 in every sandbox."`
	Rootless   string `group:"Runtime" name:"rootless" default:"auto" enum:"auto,always,never" help:"Whether to make sandboxes without being root, in a user namespace. auto: when not root."`
}

// Limits are the bounds of the environment's sandboxes.
func (c *Config) Limits() runtime.Limits {
	return runtime.Limits{
		CPU:       c.CPU,
		Memory:    int64(c.Memory),
		Processes: c.Processes,
		OpenFiles: c.OpenFiles,
		Root:      int64(c.RootSize),
		Tmp:       int64(c.TmpSize),
		Shm:       int64(c.ShmSize),
		Inodes:    c.Inodes,
	}
}
