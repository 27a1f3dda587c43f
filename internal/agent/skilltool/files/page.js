// What is asked of a page, in a world of its own: scripts of the page change nothing in it.
({
  // read is the text of the page with its links numbered, as Markdown as far as it goes.
  read(most) {
    const links = [], skipped = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "SVG", "CANVAS", "OBJECT", "EMBED"]);
    const apart = /^(H[1-6]|P|TABLE|PRE|UL|OL|DL|BLOCKQUOTE|FIGURE)$/;
    let text = "", nodes = 0;
    const full = () => text.length >= most;
    const put = (more) => { if (!full()) text += more; };
    const line = () => { if (text && !text.endsWith("\n")) put("\n"); };
    const gap = () => { line(); if (text && !text.endsWith("\n\n")) put("\n"); };
    const web = (url) => { try { return /^https?:$/.test(new URL(url).protocol); } catch { return false; } };
    const clean = (words) => words.trim().replace(/\s+/g, " ");
    const field = (node) => {
      switch (node.tagName.toUpperCase()) {
        case "INPUT": return node.type === "hidden" ? "" : `[${node.type} ${node.name || node.placeholder}: ${node.type === "password" ? "" : node.value}]`;
        case "SELECT": return `[select ${node.name}: ${[...node.selectedOptions].map((o) => o.text).join(", ")}]`;
        case "TEXTAREA": return `[textarea ${node.name}: ${node.value}]`;
        case "IMG": return node.alt.trim() && `[image: ${clean(node.alt)}]`;
      }
    };
    const children = (nodes, kept) => { for (const child of nodes) walk(child, kept); };
    const element = (node, kept) => {
      const name = node.tagName.toUpperCase(), style = node.ownerDocument.defaultView?.getComputedStyle(node);
      if (skipped.has(name) || !style || style.display === "none" || node.getAttribute("aria-hidden") === "true") return;
      const seen = style.visibility === "visible", shown = field(node);
      if (shown !== undefined) return seen && put(shown);
      if (name === "BR") return put("\n");
      if (name === "SLOT" && node.assignedNodes().length) return children(node.assignedNodes(), kept);
      const cell = name === "TD" || name === "TH", block = !cell && !/^(inline|contents|ruby)/.test(style.display);
      const edge = apart.test(name) ? gap : block ? line : () => {};
      edge();
      if (/^H[1-6]$/.test(name)) put("#".repeat(+name[1]) + " ");
      if (name === "LI") put("- ");
      if (cell) put("| ");
      if (name === "IFRAME" || name === "FRAME") {
        if (node.contentDocument?.body) children(node.contentDocument.body.childNodes, false);
        else if (web(node.src)) put(`[frame: ${node.src}]`);
      } else children((node.shadowRoot ?? node).childNodes, kept || name === "PRE");
      if (name === "A" && seen && web(node.href)) put(` [${links.push({ text: clean(node.innerText).slice(0, 200), url: node.href })}]`);
      if (cell) put(" ");
      edge();
    };
    const walk = (node, kept) => {
      if (full() || ++nodes > 300000) return;
      if (node.nodeType === Node.ELEMENT_NODE) return element(node, kept);
      if (node.nodeType !== Node.TEXT_NODE || !node.data) return;
      const parent = node.parentElement ?? node.getRootNode().host;
      if (parent && getComputedStyle(parent).visibility !== "visible") return;
      if (kept) return put(node.data);
      const words = node.data.replace(/\s+/g, " ");
      put(!text || /\s$/.test(text) ? words.trimStart() : words);
    };
    if (document.body) children(document.body.childNodes, false);
    text = text.replace(/[^\S\n]+$/gm, "").replace(/\n{3,}/g, "\n\n").trimEnd();
    return { title: clean(document.title), url: location.href, text, links, cut: full() };
  },

  // extract is what a selector finds, or the tables in it.
  extract(what, selector, attribute, most) {
    let found;
    try {
      found = [...document.querySelectorAll(selector)];
    } catch {
      return { refused: `selector is none of CSS: ${selector}` };
    }
    if (what === "tables") {
      const text = (cell) => cell.innerText.trim().replace(/\s+/g, " ");
      const tables = found.flatMap((e) => (e.tagName === "TABLE" ? [e] : [...e.querySelectorAll("table")]));
      return { tables: [...new Set(tables)].slice(0, most).map((t) => [...t.rows].map((r) => [...r.cells].flatMap((c) => [text(c), ...Array(Math.min(c.colSpan - 1, 50)).fill("")]))) };
    }
    const value = (e) => {
      if (!attribute) return (e.innerText ?? e.textContent).trim();
      const given = e.getAttribute(attribute);
      if (given === null || (attribute !== "href" && attribute !== "src")) return given;
      try { return new URL(given, document.baseURI).href; } catch { return given; }
    };
    return { values: found.slice(0, most).map(value).filter((v) => v !== null) };
  },
})
