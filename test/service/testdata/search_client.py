"""Searches with the contract's own client for Python, as it is published."""
import asyncio

from perplexity import AsyncPerplexity, Perplexity

client = Perplexity()
found = client.search.create(query="atolls", max_results=2, search_domain_filter=["example.org"], country=None)
assert found.id.startswith("trc_"), found
assert [(r.title, r.url, r.snippet, r.date) for r in found.results] == [
    ("About atolls", "https://example.org/atolls", "Rings of coral.", "2026-03-01"),
    ("More about atolls", "https://sub.example.org/more", "Lagoons.", None),
], found
both = client.search.create(query=["atolls", "reefs"], max_tokens=1000, max_tokens_per_page=2, display_server_time=True)
assert [r.title for r in both.results] == ["About atolls", "About reefs", "Elsewhere", "More about atolls"], both
assert both.results[0].snippet == "Rings of" and both.server_time, both
print("sync")


async def main():
    async with AsyncPerplexity() as client:
        people = await client.search.create(query="who", search_type="people", max_results=50)
        assert people.results[0].title == "A person", people
        try:
            await client.search.create(query="nothing here", search_mode="academic")
        except Exception as error:
            assert error.status_code == 400 and "search_mode" in str(error), error
        else:
            raise AssertionError("a search that is not done is not refused")


asyncio.run(main())
print("async")
