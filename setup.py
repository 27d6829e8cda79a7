"""The compiled code under the summaries, the readers and the phases; all else is in setup.cfg.

It is optional: without a C compiler the package installs all the same, and NumPy does the work with
equal results."""

from setuptools import Extension, setup

INCLUDE = "libtrace/include"


def compiled(module: str, *headers: str) -> Extension:
    """A module in C that reads these headers of the recorder."""
    return Extension(
        module,
        sources=[f"{module.replace('.', '/')}.c"],
        depends=["ensembles/arrays.h", *(f"{INCLUDE}/ensio/{header}" for header in headers)],
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
    ]
)
