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
    const take = () => {
      const data = Buffer.allocUnsafeSlow(64 << 10); // more than is ever sent
      for (let at = 0; ; ) {
        // Not all at once: what is left tells process 1 that this was killed.
        const got = fs.readSync(100, data, at, at === 0 ? 256 : data.length - at, null);
        if (got === 0) process.reallyExit(1);
        at += got;
        if (at >= 4 && at >= 4 + data.readUInt32LE(0)) return data.subarray(4, at);
      }
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
    const message = take();
    fs.closeSync(100);
    fs.closeSync(101);
    delete process.env.NODE_OPTIONS;
    if (process._preload_modules) process._preload_modules.length = 0;
    if (message[0] & 8) process.chdir(process.cwd());
    const entries = message[0] & 17 ? message.toString('utf8', 1).split('\0').slice(0, -1) : [];
    if (message[0] & 16) process.argv.push(...entries.splice(0, Number(entries[0]) + 1).slice(1));
    if (message[0] & 32) {
      fs.closeSync(0);
      fs.openSync('/run/atoll/stdin'); // as 0, the lowest that is free
    }
    if (message[0] & 1) {
      for (const name of Object.keys(process.env)) delete process.env[name];
      for (const entry of entries) {
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
    const { reallyExit, resourceUsage, moduleLoadList } = process;
    const used = resourceUsage.bind(process);
    const { closeSync } = fs;
    const { wait } = Atomics;
    const { getOwnPropertyDescriptor } = Object;
    const loaded = [].includes.bind(moduleLoadList);
    const never = new Int32Array(new SharedArrayBuffer(4));
    // What process 1 would have to say of them is known only at the very end.
    const others = ['Internal Binding process_wrap', 'Internal Binding spawn_sync', 'NativeModule internal/worker', 'NativeModule inspector'];
    // The kernel takes long to end a process, and nothing of it shows. So process 1
    // is told before, by a title and by outputs that end, what there is to tell of
    // one that ends well: KiB of memory and time in units of 10 us, each in five
    // digits of six bits. It is left some time to pass that on undisturbed.
    const tell = () => {
      for (let i = 0; i < others.length; i++) if (loaded(others[i])) return;
      if (typeof getOwnPropertyDescriptor(process, 'title')?.value !== 'string') return;
      const { maxRSS, userCPUTime, systemCPUTime } = used();
      const digits = '0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmno';
      let title = '\u0001\u0002';
      for (let i = 0, n = maxRSS; i < 5; i++, n /= 64) title += digits[n & 63];
      for (let i = 0, n = (userCPUTime + systemCPUTime) / 10; i < 5; i++, n /= 64) title += digits[n & 63];
      process.title = title;
      closeSync(1);
      closeSync(2);
      wait(never, 0, 0, 20);
    };
    const last = (code) => {
      const status = Number(process.exitCode ?? code);
      // 13: a warning is still to come, about an await that was never settled.
      if (!Number.isInteger(status) || status === 13 || process.reallyExit !== reallyExit) return;
      // What was loaded natively may have something to put in order.
      if (Object.keys(require.cache).some((name) => name.endsWith('.node'))) return;
      if (loaded('NativeModule sqlite')) return;
      try {
        if (status === 0) tell();
      } catch {
        // The program has changed what this uses.
      }
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
