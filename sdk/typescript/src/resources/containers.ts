import { form, type Upload } from "../body.js";
import { p, Resource, type CallOptions, type Transport } from "../transport.js";
import type { Container, ContainerFile, DeletedContainer, DeletedContainerFile, NewContainer } from "../wire.gen.js";

/** Which part of a list is asked for, in the form of OpenAI's lists. */
export interface AfterQuery {
  limit?: number;
  order?: "asc" | "desc";
  /** The id of the last item that there was. */
  after?: string;
}

/** Sandboxes of the code_interpreter of responses. */
export class Containers extends Resource {
  readonly files: ContainerFiles;
  constructor(t: Transport) {
    super(t);
    this.files = new ContainerFiles(t);
  }

  /** Makes a container. */
  create(request: NewContainer, o?: CallOptions): Promise<Container> {
    return this.t.create("/v1/containers", request, o);
  }

  /** Lists containers. */
  list(query?: AfterQuery & { name?: string }, o?: CallOptions) {
    return this.t.after<Container>("/v1/containers", query, o);
  }

  /** Shows a container. */
  get(container: string, o?: CallOptions): Promise<Container> {
    return this.t.get(p`/v1/containers/${container}`, o);
  }

  /** Ends a container. */
  delete(container: string, o?: CallOptions): Promise<DeletedContainer> {
    return this.t.delete(p`/v1/containers/${container}`, o);
  }
}

/** The files of a container. */
export class ContainerFiles extends Resource {
  /** Uploads a file; one of that name is replaced. */
  create(container: string, file: Upload, o?: CallOptions): Promise<ContainerFile> {
    const { content, type } = form([["file", file]]);
    return this.t.upload("POST", p`/v1/containers/${container}/files`, content, { ...o, type });
  }

  /** Lists files, newest first. */
  list(container: string, query?: AfterQuery, o?: CallOptions) {
    return this.t.after<ContainerFile>(p`/v1/containers/${container}/files`, query, o);
  }

  /** Shows a file. */
  get(container: string, file: string, o?: CallOptions): Promise<ContainerFile> {
    return this.t.get(p`/v1/containers/${container}/files/${file}`, o);
  }

  /** Returns a file's bytes. */
  content(container: string, file: string, o?: CallOptions): Promise<Response> {
    return this.t.download(p`/v1/containers/${container}/files/${file}/content`, o);
  }

  /** Deletes a file. */
  delete(container: string, file: string, o?: CallOptions): Promise<DeletedContainerFile> {
    return this.t.delete(p`/v1/containers/${container}/files/${file}`, o);
  }
}
