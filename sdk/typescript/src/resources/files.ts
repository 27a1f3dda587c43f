import { form, type Upload } from "../body.js";
import type { PageQuery } from "../list.js";
import { p, Resource, type CallOptions } from "../transport.js";
import type { DeletedFile, UploadedFile } from "../wire.gen.js";

/** Files that sessions are given by their ids. */
export class Files extends Resource {
  /** Uploads a file. */
  upload(file: Upload & { expires_in_seconds?: number | undefined }, o?: CallOptions): Promise<UploadedFile> {
    const { content, type } = form([["file", file]], { expires_in_seconds: file.expires_in_seconds });
    return this.t.upload("POST", "/v1/files", content, { ...o, type });
  }

  /** Lists files, the newest first; scope_id is a session whose shared files are meant. */
  list(query?: PageQuery & { ids?: string; scope_id?: string }, o?: CallOptions) {
    return this.t.list<UploadedFile>("/v1/files", query, o);
  }

  /** Shows a file. */
  get(id: string, o?: CallOptions): Promise<UploadedFile> {
    return this.t.get(p`/v1/files/${id}`, o);
  }

  /** Returns a file's bytes. */
  content(id: string, o?: CallOptions): Promise<Response> {
    return this.t.download(p`/v1/files/${id}/content`, o);
  }

  /** Deletes a file. */
  delete(id: string, o?: CallOptions): Promise<DeletedFile> {
    return this.t.delete(p`/v1/files/${id}`, o);
  }
}
