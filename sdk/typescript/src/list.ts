/** A part of a list. */
export interface Page<T> {
  data: T[];
  /** Give it as page to get the next part; null at the end. */
  next_page?: string | null;
}

/** How much of a list to read. */
export interface PageQuery {
  /** Items of a page at most. */
  limit?: number;
  /** The next_page of an earlier answer. */
  page?: string;
}

/**
 * List is a list on the server. Awaited it is one page; iterated it is all items, of which
 * each page is asked for when the one before has been read.
 */
export class List<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  private readonly read: (page?: string) => Promise<Page<T>>;
  constructor(read: (page?: string) => Promise<Page<T>>) {
    this.read = read;
  }

  /** Gives the first page. */
  then<A = Page<T>, B = never>(done?: ((page: Page<T>) => A | PromiseLike<A>) | null, failed?: ((e: unknown) => B | PromiseLike<B>) | null): Promise<A | B> {
    return this.read().then(done, failed);
  }

  /** Yields all items, page after page. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    let next: string | null | undefined;
    do {
      const page: Page<T> = await this.read(next ?? undefined);
      yield* page.data;
      next = page.next_page;
    } while (next);
  }

  /** page reads one page: the first, or the one that next_page of another names. */
  page(after?: string): Promise<Page<T>> {
    return this.read(after);
  }

  /** all reads at most limit items, or all. */
  async all(limit = Infinity): Promise<T[]> {
    const items: T[] = [];
    if (limit > 0) {
      for await (const item of this) if (items.push(item) >= limit) break;
    }
    return items;
  }
}
