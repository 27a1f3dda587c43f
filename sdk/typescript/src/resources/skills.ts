import { form, type Content } from "../body.js";
import type { PageQuery } from "../list.js";
import { p, Resource, type CallOptions, type Transport } from "../transport.js";
import type { DeletedSkill, DeletedSkillVersion, Skill, SkillVersion } from "../wire.gen.js";

/** A skill's folder: its files by path, or one archive of them. */
export type SkillFolder = Record<string, Content> | { archive: Content };

const folder = (files: SkillFolder, fields: Record<string, string | undefined> = {}) =>
  form(
    "archive" in files
      ? [["files[]", { filename: "skill.zip", content: files.archive as Content }]]
      : Object.entries(files).map(([filename, content]) => ["files[]", { filename, content }] as const),
    fields,
  );

/** Skills of agents. */
export class Skills extends Resource {
  readonly versions: SkillVersions;
  constructor(t: Transport) {
    super(t);
    this.versions = new SkillVersions(t);
  }

  /** Makes a skill of its files by name, or of a zip archive of its folder. */
  create(files: SkillFolder, o?: CallOptions & { display_name?: string | undefined }): Promise<Skill> {
    const { content, type } = folder(files, { display_name: o?.display_name });
    return this.t.upload("POST", "/v1/skills", content, { ...o, type });
  }

  /** Lists skills. */
  list(query?: PageQuery & { include_archived?: boolean; source?: string }, o?: CallOptions) {
    return this.t.list<Skill>("/v1/skills", query, o);
  }

  /** Shows a skill. */
  get(skill: string, o?: CallOptions): Promise<Skill> {
    return this.t.get(p`/v1/skills/${skill}`, o);
  }

  /** Ends a skill; agents that have it keep it. */
  archive(skill: string, o?: CallOptions): Promise<Skill> {
    return this.t.post(p`/v1/skills/${skill}/archive`, undefined, o);
  }

  /** Deletes a skill. */
  delete(skill: string, o?: CallOptions): Promise<DeletedSkill> {
    return this.t.delete(p`/v1/skills/${skill}`, o);
  }
}

/** The versions of a skill. */
export class SkillVersions extends Resource {
  /** Makes another version. */
  create(skill: string, files: SkillFolder, o?: CallOptions): Promise<SkillVersion> {
    const { content, type } = folder(files);
    return this.t.upload("POST", p`/v1/skills/${skill}/versions`, content, { ...o, type });
  }

  /** Lists versions, newest first. */
  list(skill: string, query?: PageQuery, o?: CallOptions) {
    return this.t.list<SkillVersion>(p`/v1/skills/${skill}/versions`, query, o);
  }

  /** Shows a version, by its id or number, or latest. */
  get(skill: string, version: string | number, o?: CallOptions): Promise<SkillVersion> {
    return this.t.get(p`/v1/skills/${skill}/versions/${version}`, o);
  }

  /** The folder as a zip archive. */
  content(skill: string, version: string | number, o?: CallOptions): Promise<Response> {
    return this.t.download(p`/v1/skills/${skill}/versions/${version}/content`, o);
  }

  /** Deletes a version that is not the only one. */
  delete(skill: string, version: string | number, o?: CallOptions): Promise<DeletedSkillVersion> {
    return this.t.delete(p`/v1/skills/${skill}/versions/${version}`, o);
  }
}
