// Serves the page, and makes a token for each visitor: the key stays here.
//
//   ATOLL_BASE_URL, ATOLL_API_KEY the server and a key with the scopes of the tokens
//   PORT, ORIGIN               5173, and http://localhost:5173, which ATOLL_CORS_ORIGINS must allow
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { Atoll } from "@atoll-run/atoll";

const port = Number(process.env.PORT ?? 5173);
const origin = process.env.ORIGIN ?? `http://localhost:${port}`;
const baseUrl = process.env.ATOLL_BASE_URL ?? "http://127.0.0.1:8080"; // for this program and for pages
const atoll = new Atoll({ baseUrl });
const files = new URL("./dist/", import.meta.url);
const types = { ".html": "text/html", ".js": "text/javascript", ".csv": "text/csv" };

/** giveToken answers a page of this origin. Who it is that asks, an app of yours would find out first. */
async function giveToken(req, res) {
  if (req.method !== "POST" || req.headers.origin !== origin) return void res.writeHead(403).end();
  const { token, expires_at } = await atoll.tokens.create({ scopes: ["execute", "read", "sandboxes"], origins: [origin], expires_in: 900 });
  res.writeHead(200, { "content-type": "application/json", "cache-control": "no-store" }).end(JSON.stringify({ url: baseUrl, token, expires_at }));
}

/** giveFile answers with what vite build has written. */
async function giveFile(req, res) {
  const at = new URL("." + (req.url === "/" ? "/index.html" : req.url.split("?")[0]), files);
  const content = at.href.startsWith(files.href) && (await readFile(at).catch(() => undefined));
  if (!content) return void res.writeHead(404).end();
  res.writeHead(200, { "content-type": types[extname(at.pathname)] ?? "application/octet-stream" }).end(content);
}

const server = createServer((req, res) => {
  const give = req.url === "/token" ? giveToken : page;
  Promise.resolve(give(req, res)).catch((e) => {
    console.error(e.message);
    res.writeHead(500).end();
  });
});
let page = giveFile;
if (process.argv.includes("--dev")) {
  const vite = await import("vite");
  page = (await vite.createServer({ server: { middlewareMode: true, hmr: { server } } })).middlewares;
}
server.listen(port, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port} for ${origin}`));
