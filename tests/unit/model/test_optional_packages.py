"""A missing optional package is named with the command that installs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

CASES = {
    "pandas": ("pip install pandas", "import ensembles.model.pandas_frame"),
    "pyarrow": (
        "pip install pyarrow",
        "import io; from ensembles.writers.exchange.parquet import ParquetWriter as P; P(io.BytesIO())",
    ),
    "distributed": (
        'pip install "dask[distributed]"',
        "from ensembles.passes.dask import _client; _client('tcp://x:1')",
    ),
    "hdf5plugin": (
        "pip install hdf5plugin",
        "from ensembles.writers.tracefile.filters import Filter; Filter('zstd', '').options()",
    ),
    "bokeh": (
        "pip install 'ensio[report]'",
        "from ensembles.cli.main import _bringing\n"
        "    raise EnsioError(_bringing(ModuleNotFoundError(name='bokeh.io')))",
    ),
    "darshan": (
        "pip install 'ensio[darshan]'",
        "from ensembles.readers.foreign.darshan.library import load; load()",
    ),
}


@pytest.mark.parametrize("package", CASES)
def test_one_sentence_names_the_command(package: str) -> None:
    command, use = CASES[package]
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from ensembles.model.errors import EnsioError\n"
        f"try:\n    {use}\nexcept EnsioError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    (sentence,) = done.stdout.splitlines()
    assert command in sentence
