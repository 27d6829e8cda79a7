"""The compiled code under the summaries, the readers and the phases; all else is in setup.cfg.

It is optional: without a C compiler the package installs all the same, and NumPy does the work with
equal results."""

from setuptools import Extension, setup

INCLUDE = "libtrace/include"
HEADERS = ("ensembles/arrays.h", "ensembles/summaries/_kernels.h")


def compiled(module: str, *headers: str, parts: tuple[str, ...] = ()) -> Extension:
    """A module in C that reads these headers of the recorder; `parts`: other files beside its own."""
    folder, _, name = module.replace(".", "/").rpartition("/")
    return Extension(
        module,
        sources=[f"{folder}/{file}.c" for file in (name, *parts)],
        depends=[*HEADERS, *(f"{INCLUDE}/ensio/{header}" for header in headers)],
        include_dirs=[INCLUDE],
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
        libraries=["m"],
        py_limited_api=True,
        optional=True,
    )


setup(
    ext_modules=[
        compiled("ensembles.summaries._kernels", "bins.h", parts=("_spread", "_counts")),
        compiled("ensembles.summaries._callsums"),
        compiled("ensembles.readers._decode", "event.h", "jobfile.h"),
        compiled("ensembles.readers._columns", "event.h"),
        compiled("ensembles.structure._gaps", "bins.h"),
    ]
)
