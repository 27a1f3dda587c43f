// What is wrong with the page /docs: operations of /openapi.json are opened and compared,
// one of so many of each tag.
(async (every) => {
  const wrong = [];
  const ofTag = {};
  let seen = 0, all = 0;
  const frame = () => new Promise((done) => setTimeout(done, 10));
  // until waits for a value of look that is not empty.
  const until = async (look, ms = 20000) => {
    for (const end = Date.now() + ms; Date.now() < end; await frame()) {
      const found = look();
      if (found) return found;
    }
  };
  const api = await (await fetch("/openapi.json")).json();
  const squeeze = (text) => text.replace(/\s+/g, " ");
  const same = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
  const sorted = (v) => Array.isArray(v) ? v.map(sorted)
    : v && typeof v === "object" ? Object.fromEntries(Object.keys(v).sort().map((k) => [k, sorted(v[k])])) : v;

  // Without layout, drawing takes half the time.
  document.body.style.display = "none";
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, op] of Object.entries(methods)) {
      all++;
      const nth = ofTag[op.tags[0]] = (ofTag[op.tags[0]] ?? -1) + 1;
      if (nth % every) continue;
      const id = `tag/${op.tags[0]}/${method.toUpperCase()}${path}`;
      const of = (what) => wrong.push(`${method.toUpperCase()} ${path} ${what}`);
      location.hash = "#" + id;
      const section = await until(() => {
        const s = document.getElementById("api-1/" + id);
        return s && s.textContent.includes(op.summary) && s.querySelector("code.hljs")?.textContent && s;
      });
      if (!section) { of("is not drawn"); continue; }
      seen++;
      const text = squeeze(section.textContent), curl = section.querySelector("code.hljs").textContent;
      const expect = (what, has) => has || of(`does not show ${what}: ${curl}`);
      expect("its path", text.includes(path));
      expect("the server", curl.includes(location.origin));
      expect("its method", method === "get" ? !curl.includes("--request") : curl.includes("--request " + method.toUpperCase()));
      expect("the key", !op.security === !/--header 'Authorization: Bearer /.test(curl));
      for (const p of op.parameters || []) expect(`the parameter ${p.name}`, text.includes(p.name));
      for (const status of Object.keys(op.responses)) expect(`the answer ${status}`, text.includes(status));
      const body = op.requestBody?.content["application/json"];
      if (body) {
        const data = curl.match(/--data '([^]*)'/)?.[1].replaceAll(`'\\''`, "'");
        let shown;
        try { shown = JSON.parse(data); } catch { }
        expect(`its example ${JSON.stringify(body.example)}`, same(shown, body.example));
      }
    }
  }

  document.body.style.display = "";
  // All of the page is laid out and painted before it answers.
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);

  // Search finds an operation by words of its summary.
  const button = [...document.querySelectorAll("button")].find((b) => /search/i.test(b.textContent));
  button.click();
  const input = await until(() => document.querySelector("[role=dialog] input"));
  if (!input) wrong.push("search does not open");
  else {
    input.value = "unpack a tar";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    const hit = await until(() => [...document.querySelectorAll("[role=dialog] [role=option]")].find((o) => o.textContent.includes("Unpack a tar archive")));
    if (!hit) wrong.push("search does not find 'Unpack a tar archive'");
    else {
      hit.click();
      await until(() => location.hash.includes("PUT/v1/sandboxes")) || wrong.push(`the search's hit leads to ${location.hash}`);
    }
  }

  // A request can be tried from the page.
  location.hash = "#tag/operations/GET/healthz";
  const test = await until(() => [...(document.getElementById("api-1/tag/operations/GET/healthz")?.querySelectorAll("button") || [])]
    .find((b) => /test request/i.test(b.textContent)));
  test?.click();
  const send = test && await until(() => document.querySelector("[data-addressbar-action=send]"));
  send?.click();
  await until(() => performance.getEntriesByName(location.origin + "/healthz").some((e) => e.responseStatus === 200), 20000)
    || wrong.push("GET /healthz cannot be tried");
  return { All: all, Seen: seen, Wrong: wrong };
})
