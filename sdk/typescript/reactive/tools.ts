/** A JSON Schema of an object. */
export interface ObjectSchema {
  type: "object";
  properties: Record<string, object>;
  required: string[];
  additionalProperties: false;
}

/** A tool for a model, with what the package ai calls inputSchema and others parameters. */
export interface LLMTool {
  description: string;
  parameters: ObjectSchema;
  inputSchema: { jsonSchema: ObjectSchema; [mark: symbol]: true };
  /** Makes the call with arguments of a model. */
  execute(input: any, options?: { abortSignal?: AbortSignal | undefined }): Promise<any>;
}

const text = { type: "string" };
const whole = { type: "integer" };

/** The server's tools, as GET /v1/tools has them, without the sandbox: that is bound. */
const definitions: Record<string, [description: string, required: string[], properties: Record<string, object>]> = {
  shell: ["Execute a shell command in the sandbox.", ["command"], { command: text, timeout_ms: { ...whole, default: 30000 }, working_dir: { ...text, default: "/home/user" } }],
  read_file: [
    "Read a file from the sandbox filesystem.",
    ["path"],
    {
      path: text,
      offset: { ...whole, description: "Byte offset" },
      limit: { ...whole, description: "Max bytes to read" },
      encoding: { ...text, enum: ["utf-8", "base64"], description: "How content is given. By default utf-8 for text, and base64 for other content." },
    },
  ],
  write_file: [
    "Write content to a file in the sandbox.",
    ["path", "content"],
    {
      path: text,
      content: text,
      append: { type: "boolean", default: false },
      encoding: { ...text, enum: ["utf-8", "base64"], default: "utf-8", description: "How content is given." },
    },
  ],
  glob: ["List files matching a glob pattern.", ["pattern"], { pattern: text, cwd: { ...text, default: "/home/user" } }],
  browse: ["Expose a port from the sandbox and return a public URL.", ["port"], { port: whole }],
};

/** The package ai knows schemas that are not of its own making by this. */
const mark = Symbol.for("vercel.ai.schema");

/** toolsOf makes tools that are called so. */
export function toolsOf(call: (tool: string, input: object, signal?: AbortSignal) => Promise<unknown>): Record<string, LLMTool> {
  return Object.fromEntries(
    Object.entries(definitions).map(([name, [description, required, properties]]) => {
      const parameters: ObjectSchema = { type: "object", properties, required, additionalProperties: false };
      const inputSchema = { [mark]: true, jsonSchema: parameters } as LLMTool["inputSchema"];
      return [name, { description, parameters, inputSchema, execute: (input, o) => call(name, input as object, o?.abortSignal) } satisfies LLMTool];
    }),
  );
}
