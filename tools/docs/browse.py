"""Opens the built documentation in headless Chromium with chromedriver: errors, requests, searches, screenshots."""

from __future__ import annotations

import base64
import contextlib
import functools
import http.server
import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SEARCHES = ROOT / "tests" / "docs" / "searches.txt"
#: The path under which the site is served.
PREFIX = "/some/where/"
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


class Browser:
    """A session of Chromium.

    Args:
        port: chromedriver's port.
    """

    def __init__(self, port: int, profile: str):
        self.address = f"http://127.0.0.1:{port}"
        wanted = {
            "goog:chromeOptions": {
                "args": [*_FLAGS, f"--user-data-dir={profile}"],
                "perfLoggingPrefs": {"enableNetwork": True},
            },
            "timeouts": {"script": 120_000},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.path = f"/session/{made['sessionId']}"

    def _ask(self, method: str, path: str, data: Any = None) -> Any:
        body = None if method == "GET" else json.dumps(data or {}).encode()
        request = urllib.request.Request(self.address + path, body, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.read().decode()[:500]}") from None

    def open(self, url: str) -> None:
        self._ask("POST", f"{self.path}/url", {"url": url})

    def run(self, script: str, *args: Any) -> Any:
        """The value of JavaScript code; waits if it is a promise."""
        return self._ask("POST", f"{self.path}/execute/sync", {"script": script, "args": args})

    def log(self, kind: str) -> list[Any]:
        return self._ask("POST", f"{self.path}/se/log", {"type": kind})

    def devtools(self, command: str, **params: Any) -> Any:
        return self._ask("POST", f"{self.path}/goog/cdp/execute", {"cmd": command, "params": params})

    def requests(self) -> list[str]:
        """The network requests since the last call."""
        found = []
        for line in self.log("performance"):
            message = json.loads(line["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def picture(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self._ask("GET", f"{self.path}/screenshot")))

    def close(self) -> None:
        self._ask("DELETE", self.path)


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Chromium, started and stopped."""
    driver = shutil.which("chromedriver")
    if driver is None:
        raise SystemExit("chromedriver is not installed")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            for _ in range(100):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.2)
            session = Browser(port, profile)
            yield session
            session.close()
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def served(site: Path) -> Iterator[str]:
    """Serves the site on this machine, under a path; yields its address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            return super().translate_path("/" + path.removeprefix(PREFIX)) if path.startswith(PREFIX) else "/nowhere"

        def log_message(self, *args: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
    finally:
        server.shutdown()


def look(site: Path, every: bool, search: bool, shots: Path | None) -> list[str]:
    """The errors of a site in a browser."""
    found: list[str] = []
    with browser() as chromium, served(site) as address:
        if every:
            for base, size in ((address, "phone"), (f"{site.resolve().as_uri()}/", "desktop")):
                width, height = SIZES[size]
                options = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
                chromium.devtools("Emulation.setDeviceMetricsOverride", **options)
                found += _open_all(chromium, site, base)
        if search:
            found += _search_all(chromium, address)
            found += _search_all(chromium, f"{site.resolve().as_uri()}/", most=3)
        if shots is not None:
            _pictures(chromium, address, shots)
    return found


def _open_all(chromium: Browser, site: Path, base: str) -> Iterator[str]:
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if name == "404.html":
            continue
        chromium.log("browser"), chromium.requests()
        chromium.open(base + name)
        where = "from disk" if base.startswith("file") else "served"
        yield from (
            f"{name} ({where}): {e['message'][:200]}" for e in chromium.log("browser") if e["level"] == "SEVERE"
        )
        outside = {u for u in chromium.requests() if not u.startswith((base, "data:", "blob:", "about:", "chrome:"))}
        yield from (f"{name} ({where}): asks for {url}" for url in sorted(outside))
        wide = chromium.run("return document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            yield f"{name} ({where}): {wide} pixels wider than the window"


#: Types words into the search field, and waits for the addresses of the results, in order.
_TYPE = """
const [query] = arguments
return new Promise(resolve => {
  document.querySelector("[data-md-toggle=search]").checked || document.querySelector("[data-md-toggle=search]").click()
  const input = document.querySelector("[data-md-component=search-query]")
  input.value = query
  input.focus()
  input.dispatchEvent(new Event("keyup", { bubbles: true }))
  input.dispatchEvent(new Event("input", { bubbles: true }))
  let last = "", same = 0, n = 0
  const look = () => {
    const links = [...document.querySelectorAll(".md-search-result__item")].map(item => item.querySelector("a").href)
    const now = links.join()
    same = now === last && now ? same + 1 : 0
    last = now
    if (same > 5 || ++n > 100) resolve(links)
    else setTimeout(look, 100)
  }
  setTimeout(look, 200)
})
"""


def searches() -> list[tuple[str, list[str]]]:
    """The queries, and for each the suffixes of addresses of which one must be among the first three results."""
    lines = [line.partition("->") for line in SEARCHES.read_text().splitlines() if "->" in line]
    return [(query.strip(), wanted.split()) for query, _, wanted in lines]


def results(chromium: Browser, base: str, query: str) -> list[str]:
    """The results of a search, best first."""
    chromium.open(base + "index.html")
    return [
        link.removeprefix(base).partition("?")[0] + (f"#{link.partition('#')[2]}" if "#" in link else "")
        for link in chromium.run(_TYPE, query)
    ]


def _search_all(chromium: Browser, base: str, most: int | None = None) -> Iterator[str]:
    for query, wanted in searches()[:most]:
        first = results(chromium, base, query)[:3]
        if not any(found.endswith(end) for found in first for end in wanted):
            yield f"searching {query!r} finds {first}, not {wanted}"


def _pictures(chromium: Browser, base: str, shots: Path) -> None:
    pages = ["index", "help/errors", "reference/torch/exponentials", "reference/torch/all-torch.Tensor", "guides/vmap"]
    for size, (width, height) in SIZES.items():
        chromium.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=size == "phone",
        )
        for scheme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            chromium.devtools("Emulation.setEmulatedMedia", features=features)
            for page in pages:
                chromium.open(f"{base}{page}.html")
                chromium.run("localStorage.clear(); location.reload()")  # the theme keeps the first scheme that it used
                time.sleep(0.5)
                chromium.picture(shots / f"{page.replace('/', '-')}-{size}-{scheme}.png")
