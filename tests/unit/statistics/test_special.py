"""Special functions without their package: the same objects, and the package can still be imported."""

import subprocess
import sys

import pytest

from ensembles.statistics import special

FIRST_ALONE = """
import sys
from ensembles.statistics import special
alone = {name: getattr(special, name) for name in sorted(special.NAMES)}
print("scipy.special" in sys.modules)
import numpy as np, scipy, scipy.special, scipy.stats
print(scipy.special is sys.modules["scipy.special"], hasattr(scipy.special, "polygamma"))
arguments = {"betainc": (2.0, 3.0, 0.4), "ndtr": (0.3,), "ndtri": (0.3,), "gammaln": (7.5,),
             "betaln": (2.5, 3.0), "chdtrc": (3.0, 2.0), "fdtrc": (3.0, 4.0, 2.0),
             "stdtr": (4.0, 1.5), "stdtrit": (4.0, 0.9)}
print(all(function(*arguments[name]) == getattr(scipy.special, name)(*arguments[name])
          for name, function in alone.items()))
print(scipy.stats.t.ppf(0.9, 4) == alone["stdtrit"](4.0, 0.9))
"""


def run(program: str) -> list[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()


def test_functions_are_found_without_the_package_which_others_can_import_later():
    assert run(FIRST_ALONE) == ["False", "True", "True", "True", "True"]


def test_the_package_is_taken_where_the_compiled_module_is_not_as_expected():
    program = """
from ensembles.statistics import special
special._compiled_module = lambda: None
import sys
print(special.ndtri(0.5) == 0, "scipy.special" in sys.modules)
"""
    assert run(program) == ["True", "True"]


def test_there_is_nothing_else():
    with pytest.raises(AttributeError, match="no attribute erf"):
        special.erf  # noqa: B018
