export * from "./client.js";
export * from "./errors.js";
export { List, type Page, type PageQuery } from "./list.js";
export type { CallOptions, ClientOptions } from "./transport.js";
export type { StreamOptions } from "./stream.js";
export type { Content, Upload } from "./body.js";
export * from "./resources/executions.js";
export type * from "./wire.gen.js";
