"""``torch.hub``: models and weights by URL, cached in a folder.

A repository declares its models in a file ``hubconf.py`` at its root: each public function there returns a model, and
``dependencies`` lists the required packages.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from compat import serialization

try:
    from tqdm import tqdm
except ImportError:  # without the package there is no progress bar

    def tqdm(iterable: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Replaces ``tqdm``, without a bar."""
        return iterable


__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

#: The part of a file name that is a prefix of the SHA-256 of its contents.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_PART = 1 << 17


class _Folder:
    set: str | None = None


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of downloads: as set by ``set_dir``, ``$TORCH_HOME/hub``, or ``~/.cache/torch/hub``."""
    if _Folder.set is not None:
        return _Folder.set
    return os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Sets the folder of downloads.

    Example:
        >>> before = torch.hub.get_dir()
        >>> torch.hub.set_dir("/tmp/models")
        >>> torch.hub.get_dir()
        '/tmp/models'
        >>> torch.hub.set_dir(before)
    """
    _Folder.set = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Downloads a URL to a file, atomically.

    Args:
        dst: the file's path.
        hash_prefix: the expected prefix of the SHA-256 of its bytes.
        progress: ignored.

    Raises:
        RuntimeError: if the hash does not match.
    """
    dst = os.path.expanduser(dst)
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(dst) or ".", suffix=".partial", delete=False) as file:
        try:
            with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source:
                while part := source.read(_PART):
                    file.write(part)
                    digest.update(part)
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
        except BaseException:
            os.unlink(file.name)
            raise
    shutil.move(file.name, dst)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Loads a file from a URL, which is downloaded unless it is cached.

    Args:
        model_dir: the cache folder; by default ``checkpoints`` in ``get_dir()``.
        map_location, weights_only: as for ``torch.load``.
        check_hash: whether to compare the contents with the hash in the file name, ``name-<sha256 prefix>.pth``.
        file_name: the file's name in the folder, by default from the URL.

    Raises:
        RuntimeError: if the hash does not match.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> torch.save({"w": torch.ones(2)}, folder / "net.pth")
        >>> torch.hub.load_state_dict_from_url((folder / "net.pth").as_uri(), model_dir=str(folder / "kept"))
        {'w': tensor([1., 1.])}
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    kept = os.path.join(folder, name)
    if not os.path.exists(kept):
        sys.stderr.write(f'Downloading: "{url}" to {kept}\n')
        said = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, kept, said.group(1) if said else None, progress)
    return serialization.load(kept, map_location=map_location, weights_only=weights_only)


# ---------------------------------------------------------------- repositories


def _fetched(github: str, force_reload: bool) -> str:
    """The local folder of a repository's branch or tag, ``owner/name[:ref]``."""
    where, _, ref = github.partition(":")
    owner, _, name = where.partition("/")
    ref = ref or "main"
    kept = os.path.join(get_dir(), "_".join((owner, name, ref.replace("/", "_"))))
    if os.path.exists(kept) and not force_reload:
        sys.stderr.write(f"Using cache found in {kept}\n")
        return kept
    os.makedirs(get_dir(), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=get_dir()) as unpacked:
        packed = os.path.join(unpacked, "repository.zip")
        download_url_to_file(f"https://github.com/{owner}/{name}/zipball/{ref}", packed)
        with zipfile.ZipFile(packed) as archive:
            root = archive.infolist()[0].filename
            archive.extractall(unpacked)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.move(os.path.join(unpacked, root), kept)
    return kept


def _configuration(folder: str) -> ModuleType:
    """A repository's ``hubconf.py``, imported with its folder on the path."""
    spec = spec_from_file_location("hubconf", os.path.join(folder, "hubconf.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    missing = [name for name in getattr(module, "dependencies", ()) if find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, name: Any) -> Callable[..., Any]:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """A model from a repository: the result of a function in its ``hubconf.py``.

    Args:
        repo_or_dir: ``owner/name[:branch or tag]`` on GitHub, or a folder.
        model: the name of the function; further arguments are passed to it.
        source: ``"github"`` or ``"local"``.
        force_reload: whether to download it again.
        trust_repo, verbose, skip_validation: ignored.

    Raises:
        ValueError: for an unknown source.
        RuntimeError: if there is no such function, or required packages are missing.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "hubconf.py").write_text("def small(n):\\n    return list(range(n))\\n")
        >>> torch.hub.load(str(folder), "small", 3, source="local")
        [0, 1, 2]
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = _fetched(repo_or_dir, force_reload) if source == "github" else repo_or_dir
    return _entry(_configuration(folder), model)(*args, **kwargs)


def list(github: str, force_reload: bool = False, **kwargs: Any) -> Any:
    """The names of a repository's models."""
    module = _configuration(_fetched(github, force_reload))
    return [name for name, found in vars(module).items() if callable(found) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, **kwargs: Any) -> str | None:
    """The docstring of a repository's model."""
    return _entry(_configuration(_fetched(github, force_reload)), model).__doc__
