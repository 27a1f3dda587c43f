import type { PageQuery } from "../list.js";
import { p, Resource, type CallOptions, type Transport } from "../transport.js";
import type { Credential, CredentialChange, DeletedCredential, DeletedVault, NewCredential, NewVault, Vault, VaultChange } from "../wire.gen.js";

type Query = PageQuery & { include_archived?: boolean };

/** Credentials that sessions can use but not read. */
export class Vaults extends Resource {
  readonly credentials: Credentials;
  constructor(t: Transport) {
    super(t);
    this.credentials = new Credentials(t);
  }

  /** Makes a vault. */
  create(request: NewVault, o?: CallOptions): Promise<Vault> {
    return this.t.create("/v1/vaults", request, o);
  }

  /** Lists vaults. */
  list(query?: Query, o?: CallOptions) {
    return this.t.list<Vault>("/v1/vaults", query, o);
  }

  /** Shows a vault. */
  get(vault: string, o?: CallOptions): Promise<Vault> {
    return this.t.get(p`/v1/vaults/${vault}`, o);
  }

  /** Changes name or metadata of a vault. */
  change(vault: string, change: VaultChange, o?: CallOptions): Promise<Vault> {
    return this.t.patch(p`/v1/vaults/${vault}`, change, o);
  }

  /** Ends a vault, and forgets its credentials. */
  archive(vault: string, o?: CallOptions): Promise<Vault> {
    return this.t.post(p`/v1/vaults/${vault}/archive`, undefined, o);
  }

  /** Deletes a vault. */
  delete(vault: string, o?: CallOptions): Promise<DeletedVault> {
    return this.t.delete(p`/v1/vaults/${vault}`, o);
  }
}

/** The credentials of a vault. Their secrets are never shown. */
export class Credentials extends Resource {
  /** Adds a credential. */
  create(vault: string, request: NewCredential, o?: CallOptions): Promise<Credential> {
    return this.t.create(p`/v1/vaults/${vault}/credentials`, request, o);
  }

  /** Lists credentials, newest first. */
  list(vault: string, query?: Query, o?: CallOptions) {
    return this.t.list<Credential>(p`/v1/vaults/${vault}/credentials`, query, o);
  }

  /** Shows a credential. */
  get(vault: string, credential: string, o?: CallOptions): Promise<Credential> {
    return this.t.get(p`/v1/vaults/${vault}/credentials/${credential}`, o);
  }

  /** Gives a credential other secrets, another name or metadata. */
  change(vault: string, credential: string, change: CredentialChange, o?: CallOptions): Promise<Credential> {
    return this.t.patch(p`/v1/vaults/${vault}/credentials/${credential}`, change, o);
  }

  /** Archives a credential: its secrets are removed. */
  archive(vault: string, credential: string, o?: CallOptions): Promise<Credential> {
    return this.t.post(p`/v1/vaults/${vault}/credentials/${credential}/archive`, undefined, o);
  }

  /** Deletes a credential. */
  delete(vault: string, credential: string, o?: CallOptions): Promise<DeletedCredential> {
    return this.t.delete(p`/v1/vaults/${vault}/credentials/${credential}`, o);
  }
}
