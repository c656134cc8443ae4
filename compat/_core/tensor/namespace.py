"""The public namespace ``torch``, for modules that are written against the public API, such as distributions.

Names are looked up when they are used, so the order of imports does not matter.
"""

from __future__ import annotations

import sys
from typing import Any

torch: Any = sys.modules["compat"]
