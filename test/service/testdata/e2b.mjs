// Drives E2B's published packages for JavaScript against a server that has their door.
import assert from 'node:assert/strict'
import http from 'node:http'
import { CommandExitError, FileNotFoundError, SandboxNotFoundError } from 'e2b'
import { Sandbox } from '@e2b/code-interpreter'

const until = async (says, ready) => {
  for (const end = Date.now() + 30_000; Date.now() < end; await new Promise((r) => setTimeout(r, 20))) if (await ready()) return
  throw new Error(`never: ${says}`)
}

// Asks a host below localhost, which resolvers of machines need not know.
const fetched = (url, body, headers = {}) => new Promise((resolve, reject) => {
  const u = new URL(url)
  const r = http.request({ host: '127.0.0.1', port: u.port, path: u.pathname + u.search, method: body ? 'POST' : 'GET', headers: { Host: u.host, ...headers }, agent: false }, (res) => {
    let said = ''
    res.setEncoding('utf8').on('data', (d) => { said += d }).on('end', () => resolve([res.statusCode, said])).on('error', reject)
  })
  r.on('error', reject).end(body)
})

const parts = {
  async commands(s) {
    const r = await s.commands.run('echo out; echo err >&2; pwd; echo $GIVEN $X', { cwd: '/tmp', envs: { X: '1' } })
    assert.deepEqual([r.stdout, r.stderr, r.exitCode], ['out\n/tmp\nto the sandbox 1\n', 'err\n', 0])
    await assert.rejects(s.commands.run('exit 7'), (e) => e instanceof CommandExitError && e.exitCode === 7)
    let seen = ''
    const cat = await s.commands.run('cat; echo ended', { background: true, stdin: true, onStdout: (d) => { seen += d } })
    assert.ok((await s.commands.list()).some((p) => p.pid === cat.pid))
    await s.commands.sendStdin(cat.pid, 'hello\n')
    await until('the echo', () => seen === 'hello\n')
    const other = await s.commands.connect(cat.pid)
    await s.commands.closeStdin(cat.pid)
    assert.equal((await cat.wait()).stdout, 'hello\nended\n')
    assert.equal((await other.wait()).stdout, 'ended\n')
    const sleep = await s.commands.run('sleep 100', { background: true })
    assert.equal(await sleep.kill(), true)
    await assert.rejects(sleep.wait())
    await assert.rejects(s.commands.run('sleep 100', { timeoutMs: 500 }))
  },
  async terminal(s) {
    let shown = ''
    const pty = await s.pty.create({ rows: 24, cols: 80, timeoutMs: 30_000, onData: (d) => { shown += new TextDecoder().decode(d) } })
    await s.pty.resize(pty.pid, { rows: 30, cols: 90 })
    await s.pty.sendInput(pty.pid, new TextEncoder().encode('stty size\n'))
    await until('the size', () => shown.includes('30 90'))
    assert.equal(await pty.kill(), true)
  },
  async files(s) {
    assert.equal(await s.files.makeDir('/home/user/d/e'), true)
    assert.equal(await s.files.makeDir('/home/user/d/e'), false)
    const events = []
    const watch = await s.files.watchDir('/home/user/d', (e) => events.push(e), { recursive: true })
    assert.equal((await s.files.write('/home/user/d/a.txt', 'text \u20ac')).path, '/home/user/d/a.txt')
    await s.files.write([{ path: 'd/e/one', data: new Uint8Array([0, 255]).buffer }, { path: 'd/e/two', data: '2' }])
    assert.equal(await s.files.read('d/a.txt'), 'text \u20ac')
    assert.deepEqual(await s.files.read('/home/user/d/e/one', { format: 'bytes' }), new Uint8Array([0, 255]))
    assert.deepEqual((await s.files.list('/home/user/d')).map((e) => e.name).sort(), ['a.txt', 'e'])
    assert.equal((await s.files.getInfo('d/a.txt')).size, 8)
    assert.equal((await s.files.rename('d/a.txt', 'd/b.txt')).path, '/home/user/d/b.txt')
    assert.equal(await s.files.exists('d/a.txt'), false)
    await s.files.remove('d/b.txt')
    await assert.rejects(s.files.read('d/b.txt'), FileNotFoundError)
    await until('events', () => ['a.txt', 'e/one'].every((name) => events.some((e) => e.name === name && e.type === 'create')))
    await watch.stop()
  },
  async hosts(s) {
    const here = await Sandbox.connect(s.sandboxId, { sandboxUrl: `http://${s.getHost(49983)}` })
    const octets = { 'Content-Type': 'application/octet-stream' }
    const up = await here.uploadUrl('/home/user/a b+\u20ac.txt', { useSignatureExpiration: 60_000 })
    assert.equal((await fetched(up, 'up', octets))[0], 200)
    const down = await here.downloadUrl('/home/user/a b+\u20ac.txt', { user: 'user', useSignatureExpiration: 60_000 })
    assert.deepEqual(await fetched(down), [200, 'up'])
    assert.equal((await fetched(await here.downloadUrl('/x', { useSignatureExpiration: -1 })))[0], 401)
    assert.equal((await fetched(down, 'x', octets))[0], 401)
    const server = await s.commands.run('python3 -m http.server 8000 --bind 127.0.0.1', { background: true })
    assert.equal((await fetched(`http://${s.getHost(8000)}/`))[0], 200)
    await server.kill()
  },
  async code(s) {
    const r = await s.runCode("x = 20\nprint('said')\nx + 1")
    assert.deepEqual([r.text, r.logs.stdout.join(''), r.error], ['21', 'said\n', undefined])
    assert.equal((await s.runCode('1 / 0')).error.name, 'ZeroDivisionError')
    assert.equal((await s.runCode('const y = 2; y * 21', { language: 'javascript' })).text, '42')
    const other = await s.createCodeContext({ cwd: '/tmp' })
    assert.equal((await s.runCode('import os; os.getcwd()', { context: other })).text, '/tmp')
    assert.ok((await s.listCodeContexts()).some((c) => c.id === other.id))
    await s.restartCodeContext(other)
    await s.removeCodeContext(other)
  },
  async life(s) {
    assert.equal(await s.isRunning(), true)
    const info = await s.getInfo()
    assert.deepEqual([info.sandboxId, info.metadata, info.state], [s.sandboxId, { of: 'js' }, 'running'])
    await s.setTimeout(600_000)
    const [listed] = await Sandbox.list({ query: { metadata: { of: 'js' } } }).nextItems()
    assert.equal(listed.sandboxId, s.sandboxId)
    assert.ok((await s.getMetrics())[0].memTotal > 0)
    assert.equal(await s.pause(), true)
    assert.equal(await s.isRunning(), false)
    await s.connect({ timeoutMs: 120_000 })
    assert.equal((await s.runCode('x')).text, '20')
    const [copy] = await s.fork({ timeoutMs: 60_000 })
    assert.equal((await copy.runCode('x')).text, '20')
    await copy.kill()
    const kept = await s.createSnapshot()
    assert.equal(await Sandbox.deleteSnapshot(kept.snapshotId), true)
    await s.updateNetwork({ denyOut: ['0.0.0.0/0'] })
    await assert.rejects(Sandbox.connect('sb_none'), SandboxNotFoundError)
  },
}

const s = await Sandbox.create({ timeoutMs: 300_000, metadata: { of: 'js' }, envs: { GIVEN: 'to the sandbox' } })
try {
  for (const [name, part] of Object.entries(parts)) {
    await part(s)
    console.log(name)
  }
} finally {
  assert.equal(await s.kill(), true)
}
process.exit(0) // connections that are kept would hold it
