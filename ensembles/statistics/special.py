"""Special functions of SciPy, without the import of the package ``scipy.special``.

The functions lie in a compiled module of that package. The package itself also imports what other array
libraries need, which takes longer than most commands about a small run. So the compiled module is imported
under a package that is otherwise empty. If SciPy is built differently, its package is imported as usual. The
functions are the same ones in either case, and so are their results.

Examples
--------
>>> from ensembles.statistics.special import ndtr
>>> float(ndtr(0.0))
0.5
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

NAMES = frozenset(("betainc", "betaln", "chdtrc", "fdtrc", "gammaln", "ndtr", "ndtri", "stdtr", "stdtrit"))
"""The functions that may be asked for; arguments and results are those of ``scipy.special``."""

_PACKAGE = "scipy.special"


def __getattr__(name: str) -> Any:
    """Import a function when it is first asked for."""
    if name not in NAMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    module = sys.modules.get(_PACKAGE) or _compiled_module()
    found = getattr(module, name, None)
    if found is None:
        from scipy import special

        found = getattr(special, name)
    return globals().setdefault(name, found)


def _compiled_module() -> Any:
    """Import the compiled module alone; None: SciPy has none that can be imported so."""
    import scipy

    empty = ModuleType(_PACKAGE)
    empty.__path__ = [str(Path(scipy.__file__).parent / "special")]
    sys.modules[_PACKAGE] = empty
    try:
        from scipy.special import _ufuncs

        return _ufuncs
    except (ImportError, AttributeError):
        return None
    finally:
        # Later imports of the package get the real one.
        del sys.modules[_PACKAGE]
