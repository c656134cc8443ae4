/* The search's worker: an exact name comes first, then names that begin so, then titles, then texts.

   The theme talks to it in messages: 0 brings the index, answered by 1; 2 brings a query, answered by 3 with results. An
   entry of the reference has `names`, all under which it can be written; a page has the words it is to be found by. */
"use strict"

const SETUP = 0, READY = 1, QUERY = 2, RESULT = 3
const MOST = 40
const IDLE = new Set("a an and are as at by can do does for from has have how i in is it my of on or that the this to use what when where which why with".split(" "))
let pages = new Map()
let docs = []

function prepare({ docs: given }) {
  pages = new Map()
  docs = given.map(doc => {
    const [path, anchor] = doc.location.split("#")
    if (!anchor) pages.set(path, doc)
    const names = doc.names || []
    return {
      ...doc, path, anchor,
      names,
      lower: names.map(name => name.toLowerCase()),
      heading: plain(doc.title).toLowerCase(),
      body: plain(doc.text).toLowerCase(),
      entry: names.includes(doc.title)
    }
  })
}

const plain = text => text.replace(/<[^>]*>/g, " ")
const escaped = text => text.replace(/&/g, "&amp;").replace(/</g, "&lt;")

/* How well a name goes with what was typed, from 0 to 1000. The end of a name, from a dot on, counts as the name. */
function nameScore(name, lower, query, typed) {
  const depth = name.split(".").length
  if (lower === query) return 1000 + (name === typed ? 20 : 0)
  if (lower.endsWith("." + query)) return 960 + (name.endsWith("." + typed) ? 20 : 0) - 3 * depth
  const at = lower.lastIndexOf("." + query)
  const start = at >= 0 ? at + 1 : lower.startsWith(query) ? 0 : -1
  if (start >= 0) {
    const rest = lower.slice(start + query.length)
    if (rest.startsWith("_") && rest.length === 1) return 900 - depth
    return (rest.includes(".") ? 250 : 600) - rest.length - depth
  }
  return query.length > 2 && lower.slice(lower.lastIndexOf(".") + 1).includes(query) ? 200 - lower.length / 10 : 0
}

const forms = word => {
  const found = [word]
  for (const end of ["ing", "ed", "es", "s", "ation", "er"])
    if (word.length > end.length + 3 && word.endsWith(end)) found.push(word.slice(0, -end.length))
  return found
}

/* How well the words go with a heading and a text; a word that is rare counts for more. */
function wordScore(doc, words, rarity) {
  let score = 0
  const missing = []
  words.forEach((word, i) => {
    const alike = forms(word)
    const padded = ` ${doc.heading.replace(/[^\w]+/g, " ")} `
    if (padded.includes(` ${word} `)) score += 60 * rarity[i]
    else if (alike.some(w => padded.includes(` ${w}`))) score += 45 * rarity[i]
    else if (doc.lower.some(name => name.split(/[^\w]+/).some(part => alike.some(w => part.startsWith(w))))) score += 40 * rarity[i]
    else if (alike.some(w => doc.body.includes(w))) score += 10 * rarity[i]
    else missing.push(word)
  })
  return [missing.length === words.length ? 0 : score * (1 - missing.length / (words.length + 1)), missing]
}

function find(text) {
  const typed = text.trim().replace(/["*]/g, "").replace(/\(.*\)$/, "").replace(/^F\./, "nn.functional.")
  const query = typed.toLowerCase()
  if (!query) return []
  const all = query.split(/[\s,;:?!/]+/).filter(Boolean)
  const kept = all.filter(word => !IDLE.has(word))
  const words = kept.length ? kept : all
  const rarity = words.map(word => {
    const count = docs.reduce((n, doc) => n + (doc.heading.includes(word) || doc.body.includes(word)), 0)
    return 1 + Math.log((docs.length + 1) / (count + 1)) / 4
  })
  const found = []
  for (const doc of docs) {
    const best = Math.max(0, ...doc.lower.map((lower, i) => nameScore(doc.names[i], lower, query, typed) + (lower === doc.heading ? 1 : 0)))
    let [score, missing] = wordScore(doc, words, rarity)
    if (!doc.entry) {
      if (doc.heading === query) score += doc.anchor ? 500 : 990
      score *= doc.anchor ? 2 : 2.6
    }
    if (best > score) { score = best + (doc.weight || 0); missing = [] }
    if (score > 12) found.push({ doc, score, missing })
  }
  return found.sort((a, b) => b.score - a.score || a.doc.heading.length - b.doc.heading.length).slice(0, MOST)
    .map(({ doc, score, missing }) => ({ doc, score, words, missing }))
}

function marked(text, words) {
  const safe = escaped(text)
  const parts = words.filter(w => w.length > 1).map(w => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
  return parts.length ? safe.replace(new RegExp(`(${parts.join("|")})`, "gi"), "<mark>$1</mark>") : safe
}

function teaser(text, words) {
  const lower = text.toLowerCase()
  const at = Math.max(0, Math.min(...words.map(w => lower.indexOf(w)).filter(i => i >= 0), lower.length) - 60)
  const from = at >= text.length - 60 ? 0 : at
  return (from ? "… " : "") + text.slice(from, from + 180) + (text.length > from + 180 ? " …" : "")
}

/* One item a page, in the order of its best entry; an entry of the reference is an item of its own. */
function grouped(found) {
  const items = new Map()
  for (const { doc, score, words, missing } of found) {
    const terms = Object.fromEntries(words.map(word => [word, !missing.includes(word)]))
    const shown = { location: doc.location, score, terms, title: marked(plain(doc.title), words), text: doc.entry ? "" : marked(teaser(plain(doc.text), words), words) }
    if (doc.entry) {
      shown.title += `<small class="r-found">${escaped(doc.text)}</small>`
      items.set(doc.location, [shown])
    } else items.set(doc.path, [...(items.get(doc.path) || []), shown])
  }
  for (const [path, group] of items) {
    if (path.includes("#") || group.some(item => item.location === path)) continue
    const page = pages.get(path)
    group.push({ location: path, title: escaped(plain(page ? page.title : path)), text: "", score: 0, terms: {} })
  }
  return [...items.values()]
}

function handleSearch({ type, data }) {
  if (type === SETUP) {
    prepare(data)
    return { type: READY }
  }
  return { type: RESULT, data: { items: grouped(find(data)) } }
}

if (typeof document === "undefined") addEventListener("message", event => postMessage(handleSearch(event.data)))
else self.handleSearch = handleSearch
