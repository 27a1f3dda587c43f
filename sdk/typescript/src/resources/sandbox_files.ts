import type { Content } from "../body.js";
import { follow, type StreamOptions } from "../stream.js";
import { p, Resource } from "../transport.js";
import type { SandboxChange, SandboxFile, SandboxFiles, SandboxUnpacked, SandboxWritten } from "../wire.gen.js";
import { within, type SandboxOptions } from "./sandboxes.js";

/** Files of a sandbox. Paths are absolute, or from /home/user. */
export class SandboxFilesystem extends Resource {
  /** The bytes of a file: await text(), bytes by arrayBuffer(), or read body as a stream. */
  read(sandbox: string, path: string, o?: SandboxOptions): Promise<Response> {
    return this.t.download(p`/v1/sandboxes/${sandbox}/files`, o, { ...within(o), path });
  }

  /** Writes a file: all of it is there, or what was before. mode is octal, such as 755. */
  write(sandbox: string, path: string, content: Content, o?: SandboxOptions & { append?: boolean | undefined; mode?: string | undefined }): Promise<SandboxWritten> {
    const query = { ...within(o), path, append: o?.append, mode: o?.mode };
    return this.t.call("PUT", p`/v1/sandboxes/${sandbox}/files`, { timeout: 0, ...o, content, query, repeatable: !o?.append });
  }

  /** Deletes a file or folder. */
  delete(sandbox: string, path: string, o?: SandboxOptions & { recursive?: boolean | undefined }): Promise<void> {
    return this.t.delete(p`/v1/sandboxes/${sandbox}/files`, o, { ...within(o), path, recursive: o?.recursive });
  }

  /** Describes what stands at a path. */
  stat(sandbox: string, path: string, o?: SandboxOptions): Promise<SandboxFile> {
    return this.t.get(p`/v1/sandboxes/${sandbox}/files/stat`, o, { ...within(o), path });
  }

  /** Lists a folder. */
  list(sandbox: string, path: string, o?: SandboxOptions & { depth?: number | undefined; limit?: number | undefined }): Promise<SandboxFiles> {
    return this.t.get(p`/v1/sandboxes/${sandbox}/files/list`, o, { ...within(o), path, depth: o?.depth, limit: o?.limit });
  }

  /** Makes a folder, and those above it. */
  makeFolder(sandbox: string, path: string, o?: SandboxOptions): Promise<SandboxFile> {
    return this.t.post(p`/v1/sandboxes/${sandbox}/files/directories`, undefined, o, { ...within(o), path });
  }

  /** Renames a file or folder. */
  move(sandbox: string, from: string, to: string, o?: SandboxOptions & { replace?: boolean | undefined }): Promise<SandboxFile> {
    return this.t.post(p`/v1/sandboxes/${sandbox}/files/move`, undefined, o, { ...within(o), from, to, replace: o?.replace });
  }

  /** A file or folder as a tar archive. */
  pack(sandbox: string, path: string, o?: SandboxOptions): Promise<Response> {
    return this.t.download(p`/v1/sandboxes/${sandbox}/archive`, o, { ...within(o), path });
  }

  /** Puts what a tar archive has into a folder. */
  unpack(sandbox: string, path: string, tar: Content, o?: SandboxOptions): Promise<SandboxUnpacked> {
    return this.t.upload("PUT", p`/v1/sandboxes/${sandbox}/archive`, tar, { ...o, type: "application/x-tar" }, { ...within(o), path });
  }

  /** Streams changes until the signal is aborted. A change of type lost says that some were missed. */
  watch(sandbox: string, path: string, o?: SandboxOptions & StreamOptions & { recursive?: boolean | undefined }): AsyncGenerator<SandboxChange, void, undefined> {
    const query = { ...within(o), path, recursive: o?.recursive };
    return follow<SandboxChange>(
      this.t,
      {
        open: (_, signal) => this.t.open("GET", p`/v1/sandboxes/${sandbox}/files/watch`, { ...o, query, signal, accept: "application/x-ndjson" }),
        isLast: () => false,
        lost: () => ({ type: "lost" }),
      },
      o,
    );
  }
}
