// The documentation as a site: the pages of docs/, served by every Atoll server at /help.
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

const docs = fileURLToPath(new URL('../../docs', import.meta.url))

// The sections in the order of a reader's questions, with the folders of their pages.
const sections = [
  { text: 'Start', folder: 'start' },
  { text: 'Tutorials', folder: 'tutorials' },
  { text: 'How-to', folder: 'how-to' },
  { text: 'Reference', folder: 'reference' },
  { text: 'Concepts', folder: 'concepts' },
  { text: 'Operate', folder: 'operate' },
  { text: 'Contribute', folder: 'contribute', also: ['ARCHITECTURE.md', 'decisions/README.md'] },
]

function pageItem(path) {
  const text = readFileSync(join(docs, path), 'utf8')
  const title = text.match(/^# (.+)$/m)
  if (!title) throw new Error(`${path} has no title: begin it with "# "`)
  return { text: title[1].replaceAll('`', ''), link: '/' + path.replace(/README\.md$/, '').replace(/\.md$/, '') }
}

// pages lists a section: its README first, then the order that the README links its pages in,
// then the rest by title. A folder in it is a group.
function pages({ folder, also = [] }) {
  const names = readdirSync(join(docs, folder))
  const paths = [...names.filter((n) => n.endsWith('.md')).map((n) => join(folder, n)), ...also]
  const readme = join(folder, 'README.md')
  const order = paths.includes(readme)
    ? [...readFileSync(join(docs, readme), 'utf8').matchAll(/\]\(([^)#:]+\.md)/g)].map((m) => relative(docs, join(docs, folder, m[1])))
    : []
  const rank = (path) => (path === readme ? -1 : order.includes(path) ? order.indexOf(path) : order.length)
  const items = paths
    .map((path) => ({ path, ...pageItem(path) }))
    .sort((a, b) => rank(a.path) - rank(b.path) || a.text.localeCompare(b.text))
    .map(({ text, link }) => ({ text, link }))
  const groups = names
    .filter((n) => statSync(join(docs, folder, n)).isDirectory())
    .map((n) => ({ text: groupNames[n] ?? n, collapsed: true, items: pages({ folder: join(folder, n) }) }))
  return [...items, ...groups]
}

// icon is a ring, as an atoll is.
const icon = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.5" fill="none" stroke="#2563eb" stroke-width="3.5"/></svg>'

const groupNames = { api: 'API operations', sdk: 'Client libraries' }

const sidebar = sections.map((s) => ({ text: s.text, collapsed: true, items: pages(s) }))

const firstLink = (items) => items[0].link ?? firstLink(items[0].items)

export default defineConfig({
  title: 'Atoll',
  description: 'Run the code that AI agents write, and the agents, on your own machines.',
  lang: 'en-US',
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  base: '/help/',
  srcDir: '../docs',
  srcExclude: ['!(README|ARCHITECTURE).md', 'sdk/**'],
  outDir: '../.cache/help',
  cleanUrls: true,
  rewrites: (path) => path.replace(/README\.md$/, 'index.md'),
  lastUpdated: false,
  // Pages are compiled to modules of docs/, which has no node_modules.
  vite: { resolve: { alias: [{ find: /^vue(\/server-renderer)?$/, replacement: fileURLToPath(new URL('../node_modules/vue$1', import.meta.url)) }] } },
  // Placeholders such as <name> and {{ }} are text, not Vue templates.
  markdown: {
    anchor: { slugify: githubSlug },
    html: true,
    theme: { light: 'github-light', dark: 'github-dark' },
    config: (md) => { plainText(md); folderLinks(md) },
  },
  // A link from a page to a file of the repository, such as ../LICENSE, has no page.
  ignoreDeadLinks: [/^(\.\/)?(\.\.\/)+(LICENSE|README|CHANGELOG|CONTRIBUTING|SECURITY|bench|examples|api|deploy|sdk|internal|cmd|runsc|packaging|test)/, /^https?:\/\/(127\.0\.0\.1|localhost)/],
  themeConfig: {
    nav: sections.map((s, i) => ({ text: s.text, link: firstLink(sidebar[i].items), activeMatch: `/${s.folder}/` })),
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    docFooter: { prev: 'Previous', next: 'Next' },
  },
})

// githubSlug makes the anchor of a heading as GitHub does, so that links work in both places.
function githubSlug(heading) {
  return heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-')
}

// folderLinks makes links to a README links to its folder, where the site has the page.
function folderLinks(md) {
  md.core.ruler.push('folder-links', ({ tokens }) => {
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        const href = token.type === 'link_open' && token.attrGet('href')
        if (href && !/^[a-z]+:/.test(href)) token.attrSet('href', href.replace(/README\.md(?=#|$)/, 'index.md'))
      }
    }
  })
}

// plainText keeps {{ and }} in text and code from being read as templates.
function plainText(md) {
  const text = md.renderer.rules.text
  md.renderer.rules.text = (tokens, i, ...rest) =>
    text(tokens, i, ...rest).replaceAll('{{', '&#123;&#123;').replaceAll('}}', '&#125;&#125;')
}
