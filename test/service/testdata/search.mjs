// Searches with the contract's own client for JavaScript, as it is published.
import assert from "node:assert/strict";
import Perplexity from "@perplexity-ai/perplexity_ai";

const client = new Perplexity({ apiKey: process.env.ATOLL_KEY, baseURL: process.env.ATOLL_URL });
const found = await client.search.create({ query: "atolls", max_results: 1, search_recency_filter: "year", search_language_filter: ["en"] });
assert.deepEqual(found.results, [{ title: "About atolls", url: "https://example.org/atolls", snippet: "Rings of coral.", date: "2026-03-01", last_updated: null }]);
const people = await client.search.create({ query: ["who"], search_type: "people" });
assert.equal(people.results[0].title, "A person");
await assert.rejects(client.search.create({ query: "a", country: "U" }), (error) => error.status === 400 && /country/.test(error.message));
console.log("search");
