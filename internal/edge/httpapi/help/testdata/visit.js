// Searches the site and switches its appearance as a reader would, and returns the errors.
(async () => {
  const wrong = []
  const find = async (what, look) => {
    for (let i = 0; i < 200; i++) {
      const found = look()
      if (found) return found
      await new Promise((r) => setTimeout(r, 50))
    }
    wrong.push(`no ${what}`)
  }
  // Search for a word, and follow the first result.
  const button = () => document.querySelector('.DocSearch-Button, .VPNavBarSearch button')
  const input = await find('search field', () => {
    const field = document.querySelector('.VPLocalSearchBox input')
    if (!field) button()?.click() // does nothing until the page's script runs
    return field
  })
  if (input) {
    input.value = 'webhook'
    input.dispatchEvent(new Event('input', { bubbles: true }))
    const result = await find('search result', () => document.querySelector('.VPLocalSearchBox .result'))
    const before = location.pathname
    result?.click()
    await find('page of the search result', () => location.pathname !== before && /webhook/i.test(document.querySelector('.vp-doc')?.textContent))
  }
  // Switch to dark and back.
  const dark = () => document.documentElement.classList.contains('dark')
  const start = dark()
  document.querySelector('.VPSwitchAppearance')?.click()
  await find('other appearance', () => dark() !== start)
  return wrong
})()
