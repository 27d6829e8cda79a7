"""The compiled code under the summaries, the readers and the phases; all else is in setup.cfg.

It is optional: without a C compiler the package installs all the same, and NumPy does the work with
equal results."""

from setuptools import Extension, setup

INCLUDE = "libtrace/include"


def compiled(module: str, *headers: str, beside: tuple[str, ...] = ()) -> Extension:
    """A module in C that reads these headers of the recorder, and those that lie beside it."""
    return Extension(
        module,
        sources=[f"{module.replace('.', '/')}.c"],
        depends=[*(f"{INCLUDE}/ensio/{header}" for header in headers), *beside],
        include_dirs=[INCLUDE],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        # Without contraction to fused operations the results are those of NumPy, to the last bit.
        extra_compile_args=["-std=c11", "-O3", "-ffp-contract=off"],
        libraries=["m"],
        py_limited_api=True,
        optional=True,
    )


setup(
    ext_modules=[
        compiled("ensembles.summaries._kernels", "bins.h"),
        compiled("ensembles.summaries._callsums"),
        compiled("ensembles.readers._decode", "event.h", "jobfile.h"),
        compiled("ensembles.readers._columns", "event.h"),
        compiled("ensembles.structure._gaps", "bins.h"),
        compiled("ensembles.structure._strides", beside=("ensembles/structure/_streams.h",)),
    ]
)
