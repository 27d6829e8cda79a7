"""The compiled code under the summaries, the readers and the phases; all else is in setup.cfg.

It is optional: without a C compiler the package still installs, and NumPy does the work with
equal results."""

from collections.abc import Sequence

from setuptools import Extension, setup

INCLUDE = "libtrace/include"
BINS, EVENT, JOBFILE = (f"{INCLUDE}/ensio/{name}.h" for name in ("bins", "event", "jobfile"))
ARRAYS, KERNELS = "ensembles/summaries/arrays.h", "ensembles/summaries/_kernels.h"
PROCESSORS, SHUFFLE = "ensembles/summaries/processors.h", "ensembles/readers/common/shuffle.h"
STREAMS = "ensembles/structure/strides/_streams.h"


def compiled(
    module: str, *headers: str, parts: Sequence[str] = (), libraries: Sequence[str] = ()
) -> Extension:
    """A module in C that reads these headers; `parts`: other files beside its own. Where a library is
    missing, so is the module."""
    folder, _, name = module.replace(".", "/").rpartition("/")
    return Extension(
        module,
        sources=[f"{folder}/{file}.c" for file in (name, *parts)],
        depends=[*headers],
        include_dirs=[INCLUDE, "ensembles"],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        # Without contraction to fused operations the results are those of NumPy, to the last bit. Loops are
        # aligned, as else what one costs changes by a third with the code that happens to lie before it.
        extra_compile_args=[
            "-std=c11",
            "-O3",
            "-ffp-contract=off",
            "-falign-loops=32",
            "-fvisibility=hidden",
        ],
        libraries=["m", *libraries],
        py_limited_api=True,
        optional=True,
    )


setup(
    ext_modules=[
        compiled("ensembles.summaries._kernels", BINS, ARRAYS, KERNELS, parts=("_spread", "_counts")),
        compiled("ensembles.summaries._callsums", ARRAYS),
        compiled("ensembles.readers.native._decode", EVENT, JOBFILE, SHUFFLE),
        compiled("ensembles.readers.tracefile._chunks", PROCESSORS, SHUFFLE, libraries=["deflate"]),
        compiled("ensembles.readers.common._sorted", PROCESSORS),
        compiled("ensembles.readers.native._columns", EVENT),
        compiled("ensembles.structure.phases._gaps", BINS, ARRAYS),
        compiled("ensembles.structure.strides._strides", PROCESSORS, STREAMS),
    ]
)
