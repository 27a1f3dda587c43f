import type { PageQuery } from "../list.js";
import { AtollError } from "../errors.js";
import { follow, type Source, type StreamOptions } from "../stream.js";
import { p, Resource, type CallOptions } from "../transport.js";
import type {
  NewSession, NewSessionEvent, Session, SessionChange, SessionContext, SessionDelta, SessionEvent, SessionFile, SessionThread, SessionTurn,
} from "../wire.gen.js";

/** Which events are listed. */
export interface EventQuery extends PageQuery {
  order?: "asc" | "desc";
  /** Separated by commas. */
  types?: string;
}

/** How the events of a session are followed. */
export interface SessionStreamOptions extends StreamOptions {
  /** Pieces of messages, thinking and arguments, before the event that has the whole. */
  deltas?: boolean | undefined;
}

/** An event, or with deltas a piece of one. */
export type SessionStreamEvent = SessionEvent | SessionDelta;

const sse = "text/event-stream";

/** Conversations with agents. */
export class Sessions extends Resource {
  /** Begins a session with an agent, by its id or slug. */
  create(request: NewSession, o?: CallOptions): Promise<Session> {
    return this.t.create("/v1/sessions", request, o);
  }

  /** Lists sessions, the newest first. */
  list(query?: PageQuery & { agent_id?: string; include_archived?: boolean }, o?: CallOptions) {
    return this.t.list<Session>("/v1/sessions", query, o);
  }

  /** Shows a session. */
  get(id: string, o?: CallOptions): Promise<Session> {
    return this.t.get(p`/v1/sessions/${id}`, o);
  }

  /** Changes title, metadata or budget; a budget can only be raised. */
  change(id: string, change: SessionChange, o?: CallOptions): Promise<Session> {
    return this.t.patch(p`/v1/sessions/${id}`, change, o);
  }

  /** Deletes a session with its events and sandboxes. */
  delete(id: string, o?: CallOptions): Promise<void> {
    return this.t.delete(p`/v1/sessions/${id}`, o);
  }

  /** Ends a session; it can be read from then on. */
  archive(id: string, o?: CallOptions): Promise<Session> {
    return this.t.post(p`/v1/sessions/${id}/archive`, undefined, o);
  }

  /** System prompt. */
  context(id: string, o?: CallOptions): Promise<SessionContext> {
    return this.t.get(p`/v1/sessions/${id}/context`, o);
  }

  /** Ends the turn that is under way, or the wait for answers. */
  interrupt(id: string, o?: CallOptions): Promise<Session> {
    return this.t.post(p`/v1/sessions/${id}/interrupt`, undefined, o);
  }

  /** Sends a message or an answer, and waits for the turn to end. Aborting the call interrupts it. */
  async send(id: string, event: string | NewSessionEvent, o: CallOptions = {}): Promise<SessionTurn> {
    try {
      return await this.t.create<SessionTurn>(p`/v1/sessions/${id}/events`, said(event), { timeout: 0, ...o });
    } catch (e) {
      const left = o.signal?.aborted || (e instanceof AtollError && e.code === "timeout");
      if (left) this.t.leave(this.interrupt(id));
      throw e;
    }
  }

  /** Sends a message or an answer, and returns at once. */
  start(id: string, event: string | NewSessionEvent, o?: CallOptions): Promise<SessionTurn> {
    return this.t.create(p`/v1/sessions/${id}/events`, said(event), { ...o, headers: { ...o?.headers, Prefer: "respond-async" } });
  }

  /** Sends a message or an answer, and streams the turn. Aborting interrupts it. */
  stream(id: string, event: string | NewSessionEvent, o: SessionStreamOptions = {}): AsyncGenerator<SessionStreamEvent, void, undefined> {
    let seen = false;
    let resumed = false;
    let over = false;
    const source: Source<SessionStreamEvent> = {
      open: (last, signal) => {
        resumed = seen;
        if (seen) return this.live(p`/v1/sessions/${id}/events/stream`, eventId(last), { ...o, signal });
        return this.t.open("POST", p`/v1/sessions/${id}/events`, { ...o, signal, query: { deltas: o.deltas }, json: said(event), accept: sse });
      },
      begun: () => seen,
      keeps: (e) => {
        seen ||= e.type !== "delta";
        over ||= seen && e.type === "status" && (e as SessionEvent).status !== "running";
        return e.type !== "delta";
      },
      isLast: () => resumed && over,
      ended: async () => over,
      cancel: () => this.interrupt(id),
    };
    return follow(this.t, source, o);
  }

  /** The events there are after an id and those to come, until the session is archived or deleted. */
  follow(id: string, o: SessionStreamOptions & { after?: string | undefined } = {}): AsyncGenerator<SessionStreamEvent, void, undefined> {
    return this.tail(p`/v1/sessions/${id}/events/stream`, o, async () => {
      const session = await this.get(id).catch(gone);
      return !session || session.status === "archived";
    });
  }

  /** Lists the events of a session. */
  events(id: string, query?: EventQuery, o?: CallOptions) {
    return this.t.list<SessionEvent>(p`/v1/sessions/${id}/events`, query, o);
  }

  /** Files that the agent has shared. */
  files(id: string, query?: PageQuery, o?: CallOptions) {
    return this.t.list<SessionFile>(p`/v1/sessions/${id}/files`, query, o);
  }

  /** Returns the bytes of a file that the agent has shared. */
  file(id: string, file: string, o?: CallOptions): Promise<Response> {
    return this.t.download(p`/v1/sessions/${id}/files/${file}/content`, o);
  }

  /** Work that was handed on. */
  threads(id: string, query?: PageQuery, o?: CallOptions) {
    return this.t.list<SessionThread>(p`/v1/sessions/${id}/threads`, query, o);
  }

  /** Shows work that was handed on. */
  thread(id: string, thread: string, o?: CallOptions): Promise<SessionThread> {
    return this.t.get(p`/v1/sessions/${id}/threads/${thread}`, o);
  }

  /** Lists the events of a thread. */
  threadEvents(id: string, thread: string, query?: EventQuery, o?: CallOptions) {
    return this.t.list<SessionEvent>(p`/v1/sessions/${id}/threads/${thread}/events`, query, o);
  }

  /** Follows the events of a thread until it has ended. */
  threadFollow(id: string, thread: string, o: SessionStreamOptions & { after?: string | undefined } = {}): AsyncGenerator<SessionStreamEvent, void, undefined> {
    return this.tail(p`/v1/sessions/${id}/threads/${thread}/events/stream`, o, async () => {
      const work = await this.thread(id, thread).catch(gone);
      return !work || work.status === "terminated" || work.status === "idle";
    });
  }

  private tail(path: string, o: SessionStreamOptions & { after?: string | undefined }, ended: () => Promise<boolean>) {
    return follow<SessionStreamEvent>(
      this.t,
      {
        open: (last, signal) => this.live(path, eventId(last) ?? o.after, { ...o, signal }),
        isLast: () => false,
        keeps: (e) => e.type !== "delta", // pieces have no id to go on after
        ended,
      },
      o,
    );
  }

  private live(path: string, after: string | undefined, o: SessionStreamOptions): Promise<Response> {
    return this.t.open("GET", path, { ...o, query: { deltas: o.deltas, after }, accept: sse });
  }
}

const said = (event: string | NewSessionEvent): NewSessionEvent => (typeof event === "string" ? { type: "message", content: event } : event);
const eventId = (e: SessionStreamEvent | undefined) => (e as SessionEvent | undefined)?.id;

/** gone makes a 404 nothing. */
function gone(e: unknown): undefined {
  if (!(e instanceof AtollError) || e.code !== "not_found") throw e;
}
