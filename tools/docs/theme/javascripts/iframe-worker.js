/* Opened from disk, a page may not start a worker. An iframe without a document of its own runs the script in its place:
   it has the few names that the search's script uses. */
if (location.protocol === "file:") {
  window.Worker = class IFrameWorker extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      this.waiting = []
      frame.addEventListener("load", () => {
        const scope = frame.contentWindow
        const script = scope.document.createElement("script")
        script.src = String(new URL(url, document.baseURI))
        script.onload = () => {
          this.handle = scope.handleSearch
          this.waiting.splice(0).forEach(data => this.postMessage(data))
        }
        scope.document.head.append(script)
      })
      document.documentElement.append(frame)
    }
    postMessage(data) {
      if (this.handle) Promise.resolve(this.handle(data)).then(data => this.dispatchEvent(new MessageEvent("message", { data })))
      else this.waiting.push(data)
    }
    terminate() {}
  }
}
