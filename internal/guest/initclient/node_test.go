package initclient_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/guest/guesttest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

func TestNodeSemantics(t *testing.T) {
	same(t, guesttest.Node, nil, []program{
		{name: "commonjs", code: "console.log(require.main === module, __filename, __dirname, typeof require, this === module.exports)\n"},
		{name: "module", code: "import fs from 'node:fs';\nconsole.log(import.meta.url, import.meta.filename, typeof require, this, fs.existsSync('main.js'))\nexport const x = 1;\n"},
		{name: "await at the top", code: "const x = await Promise.resolve(5);\nconsole.log(x, typeof module)\n"},
		{name: "dynamic import", code: "import('node:path').then(p => console.log(p.sep, module.id))\n"},
		{name: "imports", code: "import { y } from './lib/y.mjs';\nimport { createRequire } from 'node:module';\nconsole.log(y, createRequire(import.meta.url)('./z.json'))\n", files: map[string]string{"lib/y.mjs": "export const y = 2;\n", "z.json": `{"a":1}`}},
		{name: "requires what it wrote", code: "require('fs').writeFileSync('w.js', 'module.exports = __filename; throw new Error(\"x\")');\nrequire('./w')\n"},
		{name: "package in node_modules", code: "console.log(require('p'), module.paths)\n", files: map[string]string{"node_modules/p/index.js": "module.exports = module.parent.id + module.paths[0]\n"}},
		{name: "uncaught error", code: "console.log('before');\nfunction f() {\n  throw new TypeError('bad');\n}\nf();\n"},
		{name: "uncaught error in a module", code: "import 'node:fs';\nfunction f() {\n  throw new TypeError('bad');\n}\nf();\n"},
		{name: "uncaught value", code: "throw {a: 1}\n"},
		{name: "syntax error", code: "let x = ;\n"},
		{name: "missing module", code: "require('./nothing')\n"},
		{name: "missing import", code: "import './nothing.mjs'\n"},
		{name: "unhandled rejection", code: "Promise.reject(new Error('no'));\nsetTimeout(() => console.log('never'), 1000)\n"},
		{name: "unsettled await", code: "await new Promise(() => {})\n"},
		{name: "exit status", code: "process.on('exit', c => console.log('exit', c));\nprocess.exit(3)\n"},
		{name: "exit code", code: "process.exitCode = 4; process.on('beforeExit', () => console.log('before exit'))\n"},
		{name: "exit handlers", code: "process.on('exit', (c) => { console.log('one', c, process.listenerCount('exit') > 0); process.exitCode = 6 }); process.on('exit', (c) => console.log('two', c, process.exitCode)); process.once('exit', () => console.log('three'))\n"},
		{name: "error in an exit handler", code: "process.on('exit', () => { throw new Error('late') })\n", blur: true},
		{name: "exit in an exit handler", code: "process.on('exit', () => { process.exit(8) })\n"},
		{name: "exit code as text", code: "process.exitCode = '12'; process.on('exit', (c) => console.log(c))\n"},
		{name: "wrapped emit", code: "const emit = process.emit; process.emit = function (e, ...a) { const r = emit.call(this, e, ...a); if (e === 'exit') console.log('after', a); return r }; process.on('exit', () => console.log('exit')); console.log(Object.keys(process).includes('emit'))\n"},
		{name: "emitted by hand", code: "process.on('exit', () => console.log('handler')); process.emit('exit', 0); console.log('still here'); process.emit('custom')\n"},
		{name: "error in a handler", code: "process.on('custom', () => { throw new Error('x') }); process.emit('custom')\n"},
		{name: "uncaught error with exit handler", code: "process.on('exit', (c) => console.log('exit', c)); setTimeout(() => { throw new Error('x') }, 5)\n"},
		{name: "handled uncaught error", code: "process.on('uncaughtException', (e) => { console.log(e.message); process.exitCode = 3 }); setTimeout(() => { throw new Error('x') }, 5)\n"},
		{name: "before exit", code: "let n = 0; process.on('beforeExit', () => { if (n++ < 2) setTimeout(() => console.log('more', n), 1) }); process.on('exit', () => console.log('exit', n))\n"},
		{name: "domain", code: "const d = require('domain').create(); d.on('error', (e) => console.log('caught', e.message)); d.run(() => setTimeout(() => { throw new Error('x') }, 5))\n"},
		{name: "written in an exit handler", code: "process.on('exit', () => { console.log('x'.repeat(30000)); console.error('end') })\n"},
		{name: "terminated", code: "console.log('x'); process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 10000)\n"},
		{name: "handled signal", code: "process.on('SIGUSR2', () => { console.log('got'); process.exit() }); process.kill(process.pid, 'SIGUSR2'); setTimeout(() => {}, 10000)\n"},
		{name: "aborted", code: "console.log('x'); require('fs').writeSync(1, 'y'); process.kill(process.pid, 'SIGABRT'); for (;;);\n"},
		{name: "order of events", code: "setImmediate(() => { console.log('immediate'); setTimeout(() => console.log('timeout'), 1) });\nprocess.nextTick(() => console.log('tick'));\nPromise.resolve().then(() => console.log('promise'));\nconsole.log('main')\n"},
		{name: "input at the end", code: "process.stdin.on('data', d => console.log(d)).on('end', () => console.log('end'));\nconsole.log(require('fs').readFileSync(0, 'utf8') === '', process.stdin.isTTY)\n"},
		{name: "worker", code: `
const { Worker, isMainThread, workerData } = require('worker_threads');
if (isMainThread) {
  new Worker(__filename, { workerData: 7 }).on('exit', (c) => console.log('exit', c));
} else {
  console.log(workerData, process.argv, process.execArgv, Object.keys(require.cache), Object.keys(process.env).sort(), require.main === module, module.parent);
  console.log(Object.keys(module.constructor._pathCache).map(String));
}
`},
		{name: "worker of a module", code: "import { Worker } from 'node:worker_threads';\nnew Worker('import(\"node:fs\").then(fs => console.log(fs.readdirSync(\".\"), process.env.NODE_OPTIONS))', { eval: true })\n"},
		{name: "fork", code: `
const { fork } = require('child_process');
if (process.argv[2] === 'child') {
  process.send({ argv: process.execArgv, env: Object.keys(process.env).sort().filter((k) => k !== '_'), cache: Object.keys(require.cache) });
} else {
  fork(__filename, ['child']).on('message', (m) => console.log(JSON.stringify(m))).on('exit', (c, s) => console.log(c, s));
}
`},
		{name: "cluster", code: "const cluster = require('cluster');\nif (cluster.isPrimary) { cluster.fork().on('exit', (c) => console.log('worker', c)) } else { console.log(process.execArgv); process.exit(6) }\n"},
		{name: "children", code: "const cp = require('child_process');\nconsole.log(cp.execSync('ls /proc/self/fd | wc -l; ls -A ~; env | sort | grep -v ^_=').toString());\nconsole.log(cp.spawnSync(process.execPath, ['-p', 'process.execArgv.length + JSON.stringify(Object.keys(require.cache))']).stdout.toString())\n"},
		{name: "files", code: "const fs = require('fs');\nconsole.log(fs.openSync('main.js', 'r') > 2, fs.readdirSync('/proc/self/fd').length, fs.statSync('main.js').uid);\nfs.writeFileSync('/dev/stdout', 'out\\n'); fs.writeFileSync('/dev/stderr', 'err\\n')\n"},
		{name: "first free descriptor", code: "console.log(require('fs').openSync('main.js', 'r'))\n"},
		{name: "much output", code: "for (let i = 0; i < 20000; i++) console.log('line ' + i);\nprocess.exitCode = 2;\n"},
		{name: "a megabyte in one piece", code: "process.stdout.write('x'.repeat(1 << 20)); process.on('exit', () => console.error('end'))\n"},
		{name: "title changed", code: "process.title = 'mine'; console.log(process.title)\n"},
		{name: "title without effect", code: "console.log(process.title); delete process.title\n"},
		{name: "title with an effect", code: "let n = 0; Object.defineProperty(process, 'title', { get() { console.log('got') }, set() { console.log('set') } }); console.log(n)\n"},
		{name: "outputs closed early", code: "const fs = require('fs');\nfs.writeSync(1, 'out'); fs.closeSync(1); fs.closeSync(2);\nsetTimeout(() => { process.exitCode = 5 }, 100)\n"},
		{name: "changed builtins", code: "console.log(1); const no = () => { console.log('called'); throw new Error('no') };\nrequire('fs').closeSync = Array.prototype.includes = Atomics.wait = process.resourceUsage = Object.getOwnPropertyDescriptor = no\n"},
		{name: "child that goes on", code: "const c = require('child_process').spawn('sleep', ['2'], { stdio: 'inherit', detached: true }); c.unref(); console.log(c.pid > 0)\n"},
		{name: "worker that goes on", code: "const { Worker } = require('worker_threads');\nconst w = new Worker('setInterval(() => {}, 1000); require(\"worker_threads\").parentPort.postMessage(1)', { eval: true });\nw.on('message', () => { console.log('up'); w.unref() }).on('exit', (c) => console.log(c)); process.on('exit', (c) => console.log('exit', c))\n"},
		{name: "bytes", code: "process.stdout.write(Buffer.from([...Array(256).keys()]))\n"},
		{name: "strict and shebang", code: "#!/usr/bin/env node\n'use strict';\nconsole.log(this === module.exports); x = 1\n"},
	})
}

// nodeAhead does what the hook has done before the program comes, so that
// nothing else is left to tell a warmed Node by what it has loaded.
const nodeAhead = `
require('net');
require('tty');
const nowhere = new (require('stream').Writable)({ write: (data, encoding, done) => done() });
const quiet = new (require('console').Console)({ stdout: nowhere, stderr: nowhere, colorMode: false });
quiet.log('%s', 1, { a: [1] });
`

func TestNodeIntrospection(t *testing.T) {
	same(t, guesttest.Node, nil, []program{
		{name: "process", code: `
for (const k of Object.keys(process).sort()) {
  const v = process[k];
  if (typeof v !== 'function' && !['report', 'pid', 'ppid', 'env', 'mainModule', 'moduleLoadList', 'config', 'stdout', 'stderr', 'stdin', 'features', '_events', 'permission', 'finalization'].includes(k)) console.log(k, v);
}
console.log(process.cwd(), process.umask(), process.getuid(), process.getgroups(), process.title, process.stdout._type, process.stderr.writableHighWaterMark);
`},
		{name: "environment", code: "console.log(Object.entries(process.env), 'NODE_OPTIONS' in process.env)\n"},
		{name: "modules", code: "console.log(Object.keys(require.cache), module.children, module.parent, require.main.paths, module.constructor._preloadModules.length, module.constructor.globalPaths);\nconsole.log(Object.keys(module.constructor._pathCache), Object.keys(module.constructor._cache))\n"},
		{name: "globals", code: "console.log(Object.getOwnPropertyNames(globalThis).sort().join(), Object.keys(globalThis).join(), Object.getOwnPropertySymbols(globalThis).map(String))\n"},
		{name: "listeners and handles", code: "console.log(process.eventNames().map(String), process._getActiveHandles().length, process._getActiveRequests().length, process.getActiveResourcesInfo())\n"},
		{name: "outputs", code: "for (const s of [process.stdout, process.stderr]) console.log(s.fd, s._type, s.isTTY, s.writable, s.readable, s.writableLength, s._handle?.constructor.name, s.listenerCount('error'), s.eventNames(), Object.keys(s).sort().join());\nconsole.log(process._getActiveHandles().map((h) => h.fd), Object.keys(console).join(), process._exiting)\n"},
		{name: "loaded internals", code: nodeAhead + "console.log(process.moduleLoadList.slice().sort().join('\\n'))\n"},
		{name: "builtins in a module", code: "import * as m from 'node:module';\nconsole.log(Object.keys(m.default._cache), Object.keys(m.default._pathCache), m.default.isBuiltin('fs'))\n"},
		{name: "descriptors", code: "const fs = require('fs');\nfor (const fd of fs.readdirSync('/proc/self/fd').map(Number).sort((a, b) => a - b)) { try { console.log(fd, fs.readlinkSync('/proc/self/fd/' + fd).replace(/\\d+/, 'N')) } catch (e) { console.log(fd, e.code) } }\n"},
		// But for file locks, which hold the run's mark.
		{name: "status", code: "console.log(require('fs').readFileSync('/proc/self/status', 'utf8').split('\\n').filter(l => /^(Sig|Shd|Cap|NoNew|Umask|Uid|Gid|Groups|Threads|Tracer)/.test(l)).join('\\n'));\nconsole.log(require('fs').readFileSync('/proc/self/limits', 'utf8').replace(/^Max file locks.*\\n/m, ''), require('fs').readFileSync('/proc/self/cmdline', 'utf8'))\n", blur: true},
		{name: "time", code: "console.log(new Date(0).toString(), Intl.DateTimeFormat().resolvedOptions().timeZone, Intl.DateTimeFormat().resolvedOptions().locale)\n"},
		{name: "stack", code: "console.log(new Error('x').stack)\n"},
		{name: "stack in a module", code: "export {};\nconsole.log(new Error('x').stack)\n"},
	})
}

// A package.json that comes with the run decides what kind of module the main
// one is, and is looked for before the hook.
func TestNodePackage(t *testing.T) {
	for kind, want := range map[string]int{"module": 0, "commonjs": 1} {
		c := guesttest.Start(t).Dial(t)
		warm(t, c, guesttest.Warm(t, guesttest.Node))
		spec := guesttest.Program(t, guesttest.Node, "await 1\n")
		spec.Files = append(spec.Files, initclient.File{Path: "/home/user/package.json", Mode: 0o644, Data: []byte(`{"type":"` + kind + `"}`)})
		if got := run(t, c, spec); got.ExitCode != want || got.Warm {
			t.Errorf("a %s got %+v", kind, got)
		}
	}
}

func TestNodeVariables(t *testing.T) {
	got, bare := withVariable(t, guesttest.Node, "console.log(Object.entries(process.env))\nconsole.log(require('child_process').execSync('env | grep ^X').toString())\n", "X=a=b ü")
	compare(t, "stdout", got.stdout, bare.stdout)
	compare(t, "stderr", got.stderr, bare.stderr)
}
