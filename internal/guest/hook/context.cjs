// The persistent Node.js of a code context: reads pieces of code from descriptor 3,
// runs them one at a time in one global scope, and writes the results to descriptor
// 4. internal/node/contexts describes the messages. The script needs
// --expose-internals to use the parser of Node.js's own prompt.
'use strict';
const fs = require('fs');
const net = require('net');
const path = require('path');
const util = require('util');
const vm = require('vm');
const { createRequire } = require('module');
const { pathToFileURL } = require('url');
const { Worker } = require('worker_threads');
const acorn = require('internal/deps/acorn/acorn/dist/acorn');
const walk = require('internal/deps/acorn/acorn-walk/dist/walk');
const { clearAsyncIdStack } = require('internal/async_hooks');

const MOST = 2 << 20; // characters of one message's data
const MOST_LINE = 3 << 20; // of a whole message, whose characters have up to three bytes
const MOST_JSON = 256 << 10; // of an object that nobody asked to be JSON
const SHOW = Symbol.for('Jupyter.display');
const { writeSync } = fs;
const { stringify, parse } = JSON;
const own = __filename;

let run = 0; // the id of the run that is under way, or was last
let count = 0;
let held = '';

const line = (type, fields) => {
  const text = stringify({ id: run, type, ...fields });
  if (text.length <= MOST_LINE) return text + (type === 'done' ? ' \n' : '\n'); // the blank ends the exchange
  return line(type, { data: { 'text/plain': '…' }, metadata: { omitted: Object.keys(fields.data) } });
};
const send = (type, fields) => {
  const data = Buffer.from(held + line(type, fields));
  held = '';
  for (let at = 0; at < data.length;) at += writeSync(4, data, at);
};
const hold = (type, fields) => {
  held += line(type, fields);
};

// --- what code is made into -------------------------------------------------

// Names that a piece declares are the global scope's, so that the next one may
// declare them anew; a piece that awaits is made the body of a function.
const transform = (code) => {
  const tree = acorn.parse(code, {
    ecmaVersion: 'latest', allowAwaitOutsideFunction: true, allowImportExportEverywhere: true, allowHashBang: true,
  });
  const edits = []; // [from, to, text], none inside another
  const edit = (from, to, text) => edits.push([from, to, text]);
  const imports = tree.body.some((s) => s.type === 'ImportDeclaration');
  const waits = imports || awaits(tree);
  const names = new Set();
  const functions = [];

  for (const s of tree.body) {
    switch (s.type) {
      case 'ClassDeclaration':
        names.add(s.id.name);
        edit(s.start, s.start, waits ? `;${s.id.name} = ` : `var ${s.id.name} = `);
        edit(s.end, s.end, ';');
        break;
      case 'FunctionDeclaration':
        functions.push(s.id.name);
        break;
      case 'ImportDeclaration':
        edit(s.start, s.end, `;${imported(s, names)};`);
        break;
    }
  }
  const declare = (node, top, context) => {
    if (node.kind !== 'var' && !top) return;
    if (!waits) {
      if (node.kind !== 'var') edit(node.start, node.start + node.kind.length, 'var');
      return;
    }
    for (const d of node.declarations) bound(d.id, names);
    if (context === 'of') { // for (var x of y)
      edit(node.start, node.declarations[0].start, '');
      return;
    }
    edit(node.start, node.declarations[0].start, context === 'for' ? '' : ';void (');
    node.declarations.forEach((d, i) => {
      const last = node.declarations[i - 1];
      if (last) edit(last.end, d.start, ', ');
      edit(d.start, d.start, '(');
      edit(d.end, d.end, d.init || context === 'of' ? ')' : d.id.type === 'Identifier' && node.kind === 'var' ? ')' : ' = undefined)');
    });
    if (context !== 'for') edit(node.declarations[node.declarations.length - 1].end, node.end, ');');
  };
  outer(tree, (node, parents) => {
    if (node.type !== 'VariableDeclaration') return;
    const parent = parents[parents.length - 2];
    const top = parent === tree;
    if (parent && (parent.type === 'ForOfStatement' || parent.type === 'ForInStatement') && parent.left === node) declare(node, top, 'of');
    else if (parent && parent.type === 'ForStatement' && parent.init === node) declare(node, top, 'for');
    else declare(node, top, '');
  });

  let head = '';
  let tail = '';
  if (waits) {
    for (const name of functions) names.delete(name);
    head = names.size ? `var ${[...names].join(', ')};` : '';
    head += '(async () => {';
    head += functions.map((name) => `globalThis.${name} = ${name};`).join('');
    tail = '\n})()';
    const last = tree.body[tree.body.length - 1];
    if (last && last.type === 'ExpressionStatement') {
      edit(last.start, last.expression.start, ';return { value: (' + code.slice(last.start, last.expression.start));
      edit(last.expression.end, last.end, ')};');
    }
  }
  edits.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let out = '';
  let at = 0;
  for (const [from, to, text] of edits) {
    if (from < at) continue;
    out += code.slice(at, from) + text;
    at = to;
  }
  return { code: head + out + code.slice(at) + tail, waits };
};

// outer visits what is not inside of a function of its own.
const inner = { Function() {}, Class() {} };
const outer = (tree, visit) => {
  const parents = [];
  (function go(node) {
    parents.push(node);
    visit(node, parents);
    for (const key of Object.keys(node)) {
      const child = node[key];
      for (const c of Array.isArray(child) ? child : [child]) {
        if (!c || typeof c.type !== 'string' || /Function/.test(c.type) || c.type.startsWith('Class')) continue;
        go(c);
      }
    }
    parents.pop();
  })(tree);
};

const awaits = (tree) => {
  let found = false;
  walk.recursive(tree, null, {
    ...walk.base,
    ...inner,
    AwaitExpression() { found = true; },
    ForOfStatement(node, state, visit) {
      if (node.await) found = true;
      walk.base.ForOfStatement(node, state, visit);
    },
  });
  return found;
};

// bound adds the names that a pattern binds.
const bound = (pattern, names) => {
  switch (pattern && pattern.type) {
    case 'Identifier': names.add(pattern.name); break;
    case 'ObjectPattern': pattern.properties.forEach((p) => bound(p.type === 'RestElement' ? p.argument : p.value, names)); break;
    case 'ArrayPattern': pattern.elements.forEach((e) => bound(e, names)); break;
    case 'AssignmentPattern': bound(pattern.left, names); break;
    case 'RestElement': bound(pattern.argument, names); break;
  }
};

// imported makes an assignment of an import declaration.
const imported = (s, names) => {
  const from = `await import(${stringify(s.source.value)})`;
  if (s.specifiers.length === 0) return from;
  const parts = s.specifiers.map((x) => {
    names.add(x.local.name);
    if (x.type === 'ImportNamespaceSpecifier') return `${x.local.name} = m`;
    const name = x.type === 'ImportDefaultSpecifier' ? 'default' : x.imported.name ?? x.imported.value;
    return `${x.local.name} = m[${stringify(name)}]`;
  });
  return `((m) => { ${parts.join('; ')} })(${from})`;
};

// --- what values are shown as -----------------------------------------------

const plain = (value) => {
  try {
    return util.inspect(value, { maxArrayLength: 1000, maxStringLength: 64 << 10 });
  } catch (e) {
    return `<${typeof value} that cannot be inspected: ${e && e.message}>`;
  }
};

const bundle = async (value) => {
  let data = {};
  try {
    if (value !== null && typeof value === 'object' && typeof value[SHOW] === 'function') data = { ...(await value[SHOW]()) };
  } catch {
    // It is shown as others are.
  }
  if (Object.keys(data).length === 0 && value !== null && typeof value === 'object') {
    const proto = Object.getPrototypeOf(value);
    if (Array.isArray(value) || proto === null || proto === Object.prototype) {
      try {
        const text = stringify(value);
        if (text !== undefined && text.length <= MOST_JSON) data['application/json'] = parse(text);
      } catch {
        // It is no JSON.
      }
    }
  }
  data['text/plain'] ??= plain(value);
  return clean(data);
};

// clean makes it JSON, and leaves away what is too long, and says so.
const clean = (data) => {
  const out = {};
  const metadata = {};
  let size = 0;
  for (const [mime, value] of Object.entries(data)) {
    let text = value;
    if (ArrayBuffer.isView(text)) text = Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString('base64');
    const json = mime === 'application/json' || mime.endsWith('+json');
    if (json) text = stringify(text);
    else text = String(text);
    if (text === undefined) continue;
    size += text.length;
    if (size > MOST) {
      (metadata.omitted ??= []).push(mime);
      size -= text.length;
      continue;
    }
    out[mime] = json ? parse(text) : text;
  }
  return { data: out, metadata };
};

const display = (value, options) => {
  if (options && options.raw) {
    send('display', clean({ ...value }));
    return undefined;
  }
  const id = run;
  return bundle(value).then((shown) => { if (id === run) send('display', shown); });
};
for (const [name, mime] of Object.entries({
  html: 'text/html', markdown: 'text/markdown', latex: 'text/latex', json: 'application/json', svg: 'image/svg+xml', png: 'image/png', jpeg: 'image/jpeg',
})) {
  display[name] = (value) => display({ [mime]: value }, { raw: true });
}

const tell = (e) => {
  if (e && e.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') {
    send('error', { name: 'Interrupted', value: 'interrupted', traceback: ['Interrupted'] });
    return 'interrupted';
  }
  let name = 'Error';
  let value;
  let traceback;
  try {
    if (util.types.isNativeError(e) || e instanceof Error) {
      name = String(e.name);
      value = String(e.message);
      traceback = util.inspect(e).split('\n').filter((line) => !line.includes(own) && !/^ +at .*\(?node:/.test(line));
    } else {
      value = plain(e);
      traceback = ['Uncaught ' + value];
    }
  } catch {
    value ??= 'an error that cannot be read';
    traceback ??= [value];
  }
  send('error', { name, value: value.slice(0, MOST_JSON), traceback: traceback.join('\n').slice(0, MOST_JSON).split('\n') });
  return 'error';
};

// --- runs --------------------------------------------------------------------

const loader = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER ?? ((name) => {
  const found = createRequire(path.join(process.cwd(), 'x')).resolve(name);
  return import(path.isAbsolute(found) ? pathToFileURL(found) : found);
});

const interrupted = () => Object.assign(new Error('interrupted'), { code: 'ERR_SCRIPT_EXECUTION_INTERRUPTED' });
let interrupt = () => {};

// Agents read stderr as a sign of trouble, so warnings of experimental features are dropped:
// this script's loader causes one, as do imports of JSON and require of ES modules.
const { emitWarning } = process;
process.emitWarning = function (warning, type, ...rest) {
  if ((type?.type ?? type ?? warning?.name) === 'ExperimentalWarning') return undefined;
  return Reflect.apply(emitWarning, this, [warning, type, ...rest]);
};
new vm.Script('0', { importModuleDynamically: loader });

// While code waits for something it can keep this thread busy all the same, which
// then hears of no signal; and Node.js hears of none where it stops to listen for vm and
// begins to listen for this script. Another thread hears SIGURG, which the host sends
// after SIGINT: it says so to this thread, and has what runs ended if that has not helped
// either. Node.js takes note of callbacks that do not return, which is put right when one
// was ended.
const waiting = new Int32Array(new SharedArrayBuffer(20)); // [0]: 1 while the run waits and is not interrupted; [1]: 1 once the watcher listens; [2]: run; [3]: the last run settled; [4]: a run to interrupt once it waits
let watcher;
const watch = () => {
  if (watcher) return;
  try {
    watcher = new Worker(`
      process.emitWarning = () => {};
      const { internalBinding } = require('internal/test/binding');
      const { Session } = require('inspector');
      const { parentPort, workerData } = require('worker_threads');
      const signal = new (internalBinding('signal_wrap').Signal)();
      signal.onsignal = () => {
        const run = Atomics.load(workerData, 2);
        const unheard = () => Atomics.load(workerData, 0) === 1 && Atomics.load(workerData, 2) === run;
        setTimeout(() => {
          if (Atomics.load(workerData, 2) === run) Atomics.store(workerData, 4, run); // before it looks whether the run waits
          if (!unheard()) return;
          parentPort.postMessage(run);
          setTimeout(() => {
            if (!unheard()) return;
            const session = new Session();
            session.connectToMainThread();
            session.post('Runtime.terminateExecution', () => session.disconnect());
          }, 100);
        }, 100);
      };
      signal.start(require('os').constants.signals.SIGURG);
      parentPort.on('message', (run) => setImmediate(() => { // libuv handles signals before immediates
        Atomics.store(workerData, 3, run);
        Atomics.notify(workerData, 3);
      }));
      Atomics.store(workerData, 1, 1);
      Atomics.notify(workerData, 1);
    `, { eval: true, env: {}, execArgv: ['--expose-internals'], workerData: waiting });
    watcher.on('error', () => { // then it is as it was without one
      Atomics.store(waiting, 1, 0);
    });
    watcher.on('message', (id) => {
      if (id === Atomics.load(waiting, 2)) interrupt();
    });
    watcher.unref();
    Atomics.wait(waiting, 1, 0, 2000);
  } catch {
    // There is no room for another thread.
  }
};

// settle waits until the watcher has handled the signals that the host sent before it began a
// run. Without it the watcher can attribute a signal for the last run to the next one.
const settle = () => {
  const before = Atomics.load(waiting, 3);
  if (!watcher || Atomics.load(waiting, 1) !== 1) return;
  watcher.postMessage(Atomics.load(waiting, 2));
  Atomics.wait(waiting, 3, before, 200);
};

// within waits for a promise, or for an interrupt.
const within = (promise) => new Promise((resolve, reject) => {
  Atomics.store(waiting, 0, 1);
  interrupt = () => {
    Atomics.store(waiting, 0, 0);
    clearAsyncIdStack();
    reject(interrupted());
  };
  if (Atomics.load(waiting, 4) === Atomics.load(waiting, 2)) interrupt();
  Promise.resolve(promise).then(resolve, reject);
}).finally(() => {
  Atomics.store(waiting, 0, 0);
  interrupt = () => {};
});

const execute = async (code) => {
  const filename = `<run ${++count}>`;
  let text = code;
  let waits = false;
  try {
    ({ code: text, waits } = transform(code));
  } catch {
    // What is wrong with it is better said by who would have run it.
  }
  const script = new vm.Script(text, { filename, importModuleDynamically: loader });
  if (waits) watch();
  let value = script.runInThisContext({ breakOnSigint: true });
  if (waits) value = (await within(value))?.value;
  if (value !== undefined) {
    globalThis._ = value;
    hold('result', await within(bundle(value)));
  }
};

const serve = async (id, code) => {
  settle();
  run = id;
  Atomics.store(waiting, 2, id); // its lower 32 bits
  let status = 'ok';
  try {
    await execute(code);
  } catch (e) {
    status = tell(e);
  }
  send('done', { status });
};

// --- the host ----------------------------------------------------------------

const stray = (e) => {
  process.stderr.write(`Uncaught ${plain(e)}\n`);
};
process.on('uncaughtException', stray);
process.on('unhandledRejection', stray);
process.on('SIGINT', () => interrupt());
process.argv.length = 1;
globalThis.require = createRequire(path.join(process.cwd(), 'x'));
globalThis.module = { exports: {} };
globalThis.display = display;

const input = new net.Socket({ fd: 3, readable: true, writable: false });
let pending = Buffer.alloc(0);
let chunks = [];
let missing = 0;
let busy = false;

const next = () => {
  while (!busy) {
    if (chunks.length > 0) {
      pending = Buffer.concat([pending, ...chunks]);
      chunks = [];
    }
    const end = pending.indexOf(10);
    if (end < 0) return;
    const [id, length] = pending.toString('latin1', 0, end).split(' ');
    missing = end + 1 + Number(length) - pending.length;
    if (missing > 0) return;
    const code = pending.toString('utf8', end + 1, end + 1 + Number(length));
    pending = pending.subarray(end + 1 + Number(length));
    busy = true;
    serve(Number(id), code).then(() => {
      busy = false;
      next();
    });
  }
};
input.on('data', (data) => {
  chunks.push(data);
  missing -= data.length;
  if (missing <= 0) next();
});
input.on('end', () => process.exit());
send('ready', { version: process.versions.node });
