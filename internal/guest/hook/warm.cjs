// Makes Node wait, before it loads the main module, for the program it is to run.
// Node requires it again in every worker, where the variable is gone.
'use strict';
{
  const Module = module.constructor;
  delete require.cache[__filename];
  for (const key of Object.keys(Module._pathCache)) {
    if (Module._pathCache[key] === __filename) delete Module._pathCache[key];
  }
  if (process.env.NODE_OPTIONS === '--require=/.atoll/warm.cjs') {
    const fs = require('fs');
    const take = (n) => {
      const data = Buffer.allocUnsafeSlow(n);
      for (let at = 0; at < n; ) {
        const got = fs.readSync(100, data, at, n - at, null);
        if (got === 0) process.reallyExit(1);
        at += got;
      }
      return data;
    };
    // The first console.log loads and compiles the better part of what streams
    // are made of. So that happens before, on streams that lead nowhere, and
    // never say that they are done: that would leave a tick to be taken, and
    // show in the stack of a module.
    {
      const { Writable } = require('stream');
      const { Console } = require('console');
      require('net');
      require('tty');
      const nowhere = new Writable({ decodeStrings: false, write: () => {} });
      const quiet = new Console({ stdout: nowhere, stderr: nowhere, colorMode: false });
      quiet.log('%s', 1, { a: [1] });
      quiet.error(1);
    }
    fs.writeSync(101, 'R');
    const message = take(take(4).readUInt32LE(0));
    fs.closeSync(100);
    fs.closeSync(101);
    delete process.env.NODE_OPTIONS;
    if (process._preload_modules) process._preload_modules.length = 0;
    if (message[0] & 1) {
      for (const name of Object.keys(process.env)) delete process.env[name];
      for (const entry of message.toString('utf8', 1).split('\0').slice(0, -1)) {
        const at = entry.indexOf('=');
        process.env[entry.slice(0, at)] = entry.slice(at + 1);
      }
    }

    // When nothing is left to do, Node takes its whole heap down, page by page,
    // which takes longer than many programs do and shows nowhere; process.exit()
    // does not. So the last thing to happen on such an end is that call. Node
    // looks up process.emit then, with no script on the stack, and that alone is
    // what this waits for.
    const proto = Object.getPrototypeOf(process);
    const { on } = process;
    const { reallyExit } = process;
    const last = (code) => {
      const status = Number(process.exitCode ?? code);
      // 13: a warning is still to come, about an await that was never settled.
      if (!Number.isInteger(status) || status === 13 || process.reallyExit !== reallyExit) return;
      // What was loaded natively may have something to put in order.
      if (Object.keys(require.cache).some((name) => name.endsWith('.node'))) return;
      reallyExit.call(process, status);
    };
    const alone = () => {
      const limit = Error.stackTraceLimit;
      Error.stackTraceLimit = 3;
      const { stack } = new Error();
      Error.stackTraceLimit = limit;
      return typeof stack === 'string' && stack.split('\n').length === 3; // a title, this and its caller
    };
    Object.defineProperty(proto, 'emit', {
      configurable: true,
      get() {
        if (this === process && this._exiting && alone()) on.call(process, 'exit', last);
        return Object.getPrototypeOf(proto).emit;
      },
      set(value) {
        Object.defineProperty(this, 'emit', { value, writable: true, enumerable: true, configurable: true });
      },
    });
  }
}
