import type { Content } from "../body.js";
import type { PageQuery } from "../list.js";
import { List } from "../list.js";
import { p, Resource, type CallOptions, type Transport } from "../transport.js";
import type { DownloadRequest, FileEntry, FilesListRequest, FilesListResponse, FileUrl, SignedUrl, SignRequest, Thread, ThreadChange, UploadRequest } from "../wire.gen.js";

/** Homes that executions with a thread_id leave and find. */
export class Threads extends Resource {
  readonly files: ThreadFiles;
  constructor(t: Transport) {
    super(t);
    this.files = new ThreadFiles(t);
  }

  /** Lists threads. */
  list(query?: PageQuery & { prefix?: string }, o?: CallOptions) {
    return this.t.list<Thread>("/v1/threads", query, o);
  }

  /** Shows a thread. */
  get(id: string, o?: CallOptions): Promise<Thread> {
    return this.t.get(p`/v1/threads/${id}`, o);
  }

  /** Sets when a thread is deleted. */
  change(id: string, change: ThreadChange, o?: CallOptions): Promise<Thread> {
    return this.t.patch(p`/v1/threads/${id}`, change, o);
  }

  /** Deletes a thread with its files. */
  delete(id: string, o?: CallOptions): Promise<void> {
    return this.t.delete(p`/v1/threads/${id}`, o);
  }

  /** All files as a tar archive. */
  export(id: string, o?: CallOptions): Promise<Response> {
    return this.t.download(p`/v1/threads/${id}/archive`, o);
  }

  /** Replaces all files by those of a tar archive. */
  import(id: string, tar: Content, o?: CallOptions): Promise<Thread> {
    return this.t.upload("PUT", p`/v1/threads/${id}/archive`, tar, { ...o, type: "application/x-tar" });
  }
}

/** The files of a thread. */
export class ThreadFiles extends Resource {
  /** Lists a folder. */
  list(id: string, path = "", o?: CallOptions) {
    return new List<FileEntry>(async () => ({ data: (await this.t.get<FilesListResponse>(p`/v1/threads/${id}/files`, o, { path })).files }));
  }

  /** Returns the bytes of a file. */
  read(id: string, path: string, o?: CallOptions): Promise<Response> {
    return this.t.download(file(id, path), o);
  }

  /** Writes a file. */
  write(id: string, path: string, content: Content, o?: CallOptions): Promise<FileEntry> {
    return this.t.upload("PUT", file(id, path), content, o);
  }

  /** Deletes a file or folder. */
  delete(id: string, path: string, o?: CallOptions): Promise<void> {
    return this.t.delete(file(id, path), o);
  }

  /** A URL that reads or writes the file without a key. */
  sign(id: string, request: SignRequest, o?: CallOptions): Promise<SignedUrl> {
    return this.t.post(p`/v1/threads/${id}/signed_urls`, request, o);
  }
}

const file = (id: string, path: string) =>
  p`/v1/threads/${id}/files` + path.replace(/^\/+|\/+$/g, "").split("/").map((name) => p`/${name}`).join("");

/** Files of threads and of volumes, and URLs that read and write them without a key. */
export class Storage extends Resource {
  /** Lists a folder of a thread or of a mounted connection. */
  list(request: FilesListRequest, o?: CallOptions) {
    return new List<FileEntry>(async () => ({ data: (await this.t.post<FilesListResponse>("/v1/files/list", request, o)).files }));
  }

  /** Makes a URL that writes one file without a key. */
  uploadUrl(request: UploadRequest, o?: CallOptions): Promise<FileUrl> {
    return this.t.post("/v1/files/upload_url", request, o);
  }

  /** Makes a URL that reads one file without a key. */
  downloadUrl(request: DownloadRequest, o?: CallOptions): Promise<FileUrl> {
    return this.t.post("/v1/files/download_url", request, o);
  }
}
