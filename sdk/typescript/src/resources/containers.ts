import { form, type Upload } from "../body.js";
import { p, Resource, type CallOptions, type Transport } from "../transport.js";
import type { Container, ContainerFile, DeletedContainer, DeletedContainerFile, NewContainer } from "../wire.gen.js";

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

  create(request: NewContainer, o?: CallOptions): Promise<Container> {
    return this.t.create("/v1/containers", request, o);
  }

  list(query?: AfterQuery & { name?: string }, o?: CallOptions) {
    return this.t.after<Container>("/v1/containers", query, o);
  }

  get(container: string, o?: CallOptions): Promise<Container> {
    return this.t.get(p`/v1/containers/${container}`, o);
  }

  delete(container: string, o?: CallOptions): Promise<DeletedContainer> {
    return this.t.delete(p`/v1/containers/${container}`, o);
  }
}

export class ContainerFiles extends Resource {
  create(container: string, file: Upload, o?: CallOptions): Promise<ContainerFile> {
    const { content, type } = form([["file", file]]);
    return this.t.upload("POST", p`/v1/containers/${container}/files`, content, { ...o, type });
  }

  list(container: string, query?: AfterQuery, o?: CallOptions) {
    return this.t.after<ContainerFile>(p`/v1/containers/${container}/files`, query, o);
  }

  get(container: string, file: string, o?: CallOptions): Promise<ContainerFile> {
    return this.t.get(p`/v1/containers/${container}/files/${file}`, o);
  }

  content(container: string, file: string, o?: CallOptions): Promise<Response> {
    return this.t.download(p`/v1/containers/${container}/files/${file}/content`, o);
  }

  delete(container: string, file: string, o?: CallOptions): Promise<DeletedContainerFile> {
    return this.t.delete(p`/v1/containers/${container}/files/${file}`, o);
  }
}
