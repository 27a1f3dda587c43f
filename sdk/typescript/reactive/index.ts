export { batch, computed, effect, handler, scope, untracked, Writable, type Opaque, type Readable, type Ref, type Scope } from "./cells.js";
export { configure, type Settings } from "./client.js";
export { exec, type ExecParams, type ExecResult, type Files } from "./exec.js";
export { fetchData, readSandboxFile, writeSandboxFile, type FetchParams } from "./fetch.js";
export { settled, type State, type Task } from "./task.js";
export { sandbox, type SandboxHandle, type SandboxParams, type SandboxStatus } from "./sandbox.js";
export type { LLMTool, ObjectSchema } from "./tools.js";
