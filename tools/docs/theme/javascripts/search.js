/* The search's worker: an exact name comes first, then names that begin so, then titles, then texts.

   The theme talks to it in messages: 0 brings the index, answered by 1; 2 brings a query, answered by 3 with results. An
   entry of the reference has `names`, all under which it can be written; a page has the words it is to be found by.

   What is typed is looked for as it is, by the names that programs import modules under (`jnp.where`), and without what
   stands before the dots (`loss.backward`); three words or more also by their first letters (mean squared error). Case, underscores and blanks between words do not matter. Words that stand
   nowhere are taken for the nearest ones that do. */
"use strict"

const SETUP = 0, READY = 1, QUERY = 2, RESULT = 3
const MOST = 40
/* A score from which on a name was meant. */
const NAMED = 500
const IDLE = new Set("a an and are as at by can do does for from has have how i in is it my of on or that the this to use what when where which why with".split(" "))
/* What modules are imported as, or are called in the libraries whose functions these are. */
const IMPORTED = [
  [/^(jnp|np|onp|anp|numpy|jax\.numpy|autograd\.numpy)\./, "funcgrad.numpy."],
  [/^(jax\.)?(tree|tree_util)\.(tree_)?/, "funcgrad.trees."],
  [/^tree_/, "funcgrad.trees."],
  [/^(jax|fg)\./, "funcgrad."],
  [/^(jsp|scipy)\./, "funcgrad.scipy."],
  [/^F\./, "torch.nn.functional."],
  [/^(nn|optim|linalg|autograd|distributed|utils)\./, "torch.$1."],
]
let pages = new Map()
let docs = []
/* By word, how many documents have it in a heading or a name. */
let known = new Map()
/* The last parts of names, without underscores; of several alike the one in the shortest name counts. */
let lasts = new Map()
/* The words in texts. */
let said = new Set()

const plain = text => text.replace(/<[^>]*>/g, " ")
const escaped = text => text.replace(/&/g, "&amp;").replace(/</g, "&lt;")
const squashed = name => name.replace(/(?<=[^.])[-_ ](?=[^.])/g, "")
const parted = text => text.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().split(/[^a-z0-9]+/).filter(Boolean)

function prepare({ docs: given }) {
  pages = new Map()
  known = new Map()
  lasts = new Map()
  said = new Set()
  docs = given.map(doc => {
    const [path, anchor] = doc.location.split("#")
    if (!anchor) pages.set(path, doc)
    const names = doc.names || []
    const title = plain(doc.title)
    for (const word of new Set([title, ...names].flatMap(parted))) known.set(word, (known.get(word) || 0) + 1)
    const made = {
      ...doc, path, anchor,
      names: names.map(name => {
        const lower = name.toLowerCase()
        const last = name.slice(name.lastIndexOf(".") + 1)
        const initials = /^([A-Z][a-z]+){3,}$/.test(last) ? last.replace(/[a-z]/g, "").toLowerCase() : ""
        return { name, lower, bare: squashed(lower), initials, depth: name.split(".").length }
      }),
      parts: new Set(names.slice(0, 40).flatMap(parted)),
      heading: title.toLowerCase(),
      body: plain(doc.text).toLowerCase() + " " + (doc.arguments || ""),
      entry: Boolean(anchor) && names.includes(doc.title) && doc.arguments !== undefined
    }
    for (const word of parted(made.body)) said.add(word)
    made.headed = ` ${made.heading.replace(/[^\w]+/g, " ")} `
    if (made.entry) for (const { bare, depth } of made.names) {
      const last = bare.slice(bare.lastIndexOf(".") + 1)
      lasts.set(last, Math.max(99 - depth, lasts.get(last) || 0))
    }
    return made
  })
}

/* How well a name goes with what was typed, from 0 to 1000. The end of a name, from a dot on, counts as the name. */
function nameScore({ name, lower, bare, initials, depth }, { typed, query, plain }) {
  if (lower === query) return 1000 + (name === typed ? 20 : 0)
  if (lower.endsWith("." + query)) return 960 + (name.endsWith("." + typed) ? 20 : 0) - 3 * depth
  if (bare === plain) return 950
  if (bare.endsWith("." + plain)) return 920 - 3 * depth
  const at = lower.lastIndexOf("." + query)
  const start = at >= 0 ? at + 1 : lower.startsWith(query) ? 0 : -1
  if (start >= 0) {
    const rest = lower.slice(start + query.length)
    if (rest.startsWith("_") && rest.length === 1) return 900 - depth
    return (rest.includes(".") ? 250 : 600) - rest.length - depth
  }
  if (initials && initials === query) return 580 - depth
  return query.length > 2 && lower.slice(lower.lastIndexOf(".") + 1).includes(query) ? 200 - lower.length / 10 : 0
}

const forms = word => {
  const found = [word]
  for (const end of ["ing", "ed", "es", "s", "ation", "ion", "er"])
    if (word.length > (end === "s" ? 3 : end.length + 3) && word.endsWith(end)) {
      const stem = word.slice(0, -end.length)
      found.push(stem)
      if (stem.length > 3 && stem.at(-1) === stem.at(-2)) found.push(stem.slice(0, -1)) // clipping, clip
      if (end !== "s" && end !== "es") found.push(stem + "e")
    }
  return found
}

/* How well the words go with a heading, names and a text; a word that is rare counts for more, a long text for less. */
function wordScore(doc, words) {
  const short = 1 / (1 + doc.body.length / 300)
  let title = 0, text = 0, shown = 0
  const missing = []
  for (const { word, alike, begins, rarity } of words) {
    if (doc.headed.includes(` ${word} `)) { title += 60 * rarity; shown++ }
    else if (alike.some(w => doc.headed.includes(` ${w}`))) { title += 45 * rarity; shown++ }
    else if (alike.some(w => doc.parts.has(w))) { title += 40 * rarity; shown++ }
    else if (begins.some(w => doc.parts.has(w))) { title += 25 * rarity; shown++ }
    else if (alike.some(w => doc.body.includes(w))) text += (10 + 20 * short) * rarity
    else missing.push(word)
  }
  const there = 1 - missing.length / words.length
  if (words.length > 1) {
    const phrase = words.map(w => w.word).join(" ").replace(/s$/, "")
    if (shown === words.length) title *= 1.3
    if (doc.headed.includes(phrase)) title += 25 * words.length
    else if (doc.body.includes(phrase)) text += 40 * words.length * short
  }
  return [(title * (doc.entry ? 1 : doc.anchor ? 2 : 2.6) + text * (doc.entry ? 1 : 1.3)) * there * there, missing]
}

/* What was typed, as names are compared with it: as it is, by imports' names, without what stands before the dots. */
function readings(text) {
  const typed = text.replace(/\s*\(.*\)?$/, "").replace(/\s+/g, " ")
  const found = [[typed, 0]]
  const words = typed.split(" ").filter(word => !IDLE.has(word.toLowerCase()))
  const kept = words.join(" ")
  if (kept && kept !== typed) found.push([kept, 10])
  if (words.length > 2) found.push([words.map(word => word[0]).join(""), 60]) // mean squared error, MSELoss
  for (const [names, module] of IMPORTED) if (names.test(typed)) found.push([typed.replace(names, module), 0])
  for (let rest = kept, less = 60; /^\w+\.\w/.test(rest); less += 20) {
    rest = rest.slice(rest.indexOf(".") + 1)
    found.push([rest, less])
  }
  return found.map(([typed, less]) => {
    const query = typed.toLowerCase()
    return { typed, query, plain: squashed(query), less }
  })
}

function ranked(text) {
  const ways = readings(text)
  const query = text.toLowerCase()
  const there = word => docs.some(doc => doc.heading.includes(word) || doc.body.includes(word))
  const all = text.split(/[\s,;:?!/()]+/).filter(Boolean).flatMap(word => there(word.toLowerCase()) ? [word.toLowerCase()] : parted(word))
  const kept = all.filter(word => !IDLE.has(word))
  const words = (kept.length ? kept : all).map(word => {
    const count = docs.reduce((n, doc) => n + (doc.heading.includes(word) || doc.body.includes(word)), 0)
    const begins = [...word].map((_, i) => word.slice(0, i)).filter(w => w.length > 3 && known.get(w) > 2) // initialization, init
    return { word, alike: forms(word), begins, rarity: 1 + Math.log((docs.length + 1) / (count + 1)) / 4 }
  })
  const found = []
  for (const doc of docs) {
    let best = 0
    for (const name of doc.names) for (const way of ways) {
      const score = nameScore(name, way)
      if (score) best = Math.max(best, score - way.less + (name.lower === doc.heading ? 1 : 0))
    }
    let [score, missing] = wordScore(doc, words)
    if (!doc.entry && doc.heading === query) score = Math.max(score, doc.anchor ? 940 : 990)
    if (best > score) { score = best + (doc.weight || 0); missing = [] }
    if (score > 12) found.push({ doc, score, missing })
  }
  found.sort((a, b) => b.score - a.score || a.doc.heading.length - b.doc.heading.length)
  return found.slice(0, MOST).map(({ doc, score, missing }) => ({ doc, score, words: words.map(w => w.word), missing }))
}

/* How many letters are other ones, there, or not there, or stand in each other's place; more than `most` are all alike. */
function distance(a, b, most) {
  if (Math.abs(a.length - b.length) > most) return most + 1
  let before = [], last = [...Array(b.length + 1).keys()]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] !== b[j - 1]))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j], before[j - 2] + 1)
    }
    if (Math.min(...row) > most) return most + 1
    ;[before, last] = [last, row]
  }
  return last[b.length]
}

/* The nearest of words, those with their first letter right before others, then the more frequent one. */
function nearest(word, words) {
  const most = word.length < 4 ? 0 : word.length < 7 ? 1 : 2
  let found = null, least = Infinity
  for (const [other, weight] of words) {
    const d = distance(word, other, most)
    if (d > most) continue
    const cost = d + (other[0] === word[0] ? 0 : 0.5) - Math.min(weight, 999) / 2000
    if (cost < least) [found, least] = [other, cost]
  }
  return found
}

/* What was typed with words that stand nowhere taken for the nearest ones; null where there is none. */
function corrected(text) {
  const words = parted(text.replace(/\(.*$/, ""))
  const stands = word => IDLE.has(word) || forms(word).some(w => known.has(w) || said.has(w))
  if (words.every(stands)) return null
  const name = nearest(squashed(text.toLowerCase()).replace(/^.*\.|\s/g, ""), lasts)
  return name || words.map(word => stands(word) ? word : nearest(word, known) || word).join(" ")
}

function find(text) {
  const typed = text.trim().replace(/["*]/g, "")
  if (!typed) return []
  const found = ranked(typed)
  const other = found.length && found[0].score >= NAMED ? null : corrected(typed)
  const more = other ? ranked(other) : []
  return more.length && !(found.length && found[0].score > more[0].score) ? more : found
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
