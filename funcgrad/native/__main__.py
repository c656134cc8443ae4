"""``python -m funcgrad.native``: compiles native code in advance, for the first process too."""

import importlib.util
import sys
from pathlib import Path

from funcgrad.native.build import kernels, twins_of

#: Packages whose twins are compiled, if installed.
PACKAGES = ("funcgrad", "compat")

if __name__ == "__main__":
    found = [spec for name in PACKAGES if (spec := importlib.util.find_spec(name)) is not None and spec.origin]
    failed = False
    for library in (kernels, *[t for spec in found for t in twins_of(Path(str(spec.origin)).parent)]):
        try:
            print(library.build())
        except RuntimeError as error:
            print(error, file=sys.stderr)
            failed = True
    sys.exit(failed)
