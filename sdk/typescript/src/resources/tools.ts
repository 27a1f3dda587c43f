import { p, Resource, type CallOptions } from "../transport.js";
import type {
  BrowseInput, BrowseOutput, CodeInput, CodeOutput, ExecuteCodeRequest, GlobInput, GlobOutput, ReadFileInput, ReadFileOutput,
  SandboxCreateInput, SandboxCreateOutput, SandboxListOutput, ShellInput, ShellOutput, TransferInput, TransferOutput, WriteFileInput, WriteFileOutput,
} from "../wire.gen.js";
import type { SandboxOptions } from "./sandboxes.js";

/** The tools that models call. The first call that names a sandbox creates it. */
export class Tools extends Resource {
  /** Definitions for a model's provider. */
  list(query: { format?: "openai" | "anthropic" | string; strict?: boolean } = {}, o?: CallOptions): Promise<unknown[]> {
    return this.t.get("/v1/tools", o, query);
  }

  /** Calls a tool by its name, with the input that a model gave. */
  call<Output = unknown>(name: string, input: object, o: SandboxOptions & { agent?: string | undefined; template?: string | undefined } = {}): Promise<Output> {
    const call = name === "shell" || name === "execute_code" ? this.t.perform : this.t.post;
    return call<Output>(p`/v1/sessions/${o.session ?? "default"}/tools/${name}`, input, o, { agent: o.agent, template: o.template });
  }

  /** Runs a command in a sandbox. */
  shell = (input: ShellInput, o?: SandboxOptions) => this.call<ShellOutput>("shell", input, o);
  /** Reads a file of a sandbox. */
  readFile = (input: ReadFileInput, o?: SandboxOptions) => this.call<ReadFileOutput>("read_file", input, o);
  /** Writes a file of a sandbox. */
  writeFile = (input: WriteFileInput, o?: SandboxOptions) => this.call<WriteFileOutput>("write_file", input, o);
  /** Lists files of a sandbox by a pattern. */
  glob = (input: GlobInput, o?: SandboxOptions) => this.call<GlobOutput>("glob", input, o);
  /** Gives the URL at which browsers reach a port of a sandbox. */
  browse = (input: BrowseInput, o?: SandboxOptions) => this.call<BrowseOutput>("browse", input, o);
  /** Makes a sandbox of the session, or finds it. */
  sandboxCreate = (input: SandboxCreateInput, o?: SandboxOptions) => this.call<SandboxCreateOutput>("sandbox_create", input, o);
  /** Lists the sandboxes of the session. */
  sandboxList = (o?: SandboxOptions) => this.call<SandboxListOutput>("sandbox_list", {}, o);
  /** Copies a file or folder from one sandbox to another. */
  transfer = (input: TransferInput, o?: SandboxOptions) => this.call<TransferOutput>("transfer", input, o);
  /** Runs code for an agent's turn, under its template's policy. */
  executeCode = (input: CodeInput, o?: SandboxOptions & { agent?: string; template?: string }) => this.call<CodeOutput>("execute_code", input, o);

  /** Runs code of an agent's turn, whose calls share a sandbox. */
  runCode(request: ExecuteCodeRequest, o?: CallOptions): Promise<CodeOutput> {
    return this.t.perform("/v1/tools/execute_code", request, o);
  }

  /** Removes the sandbox of an agent's turn. */
  endTurn(agent: string, turn: string, o?: CallOptions): Promise<void> {
    return this.t.delete(p`/v1/tools/turns/${turn}`, o, { agent });
  }
}
