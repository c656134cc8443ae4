"""The library as its users see it: for modules that are written in its own terms, such as distributions.

Names are looked up when they are used, so that it does not matter which module is imported first.
"""

from __future__ import annotations

import sys
from typing import Any

torch: Any = sys.modules["compat"]
