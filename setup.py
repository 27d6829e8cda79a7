"""The compiled code under the summaries, the readers and the phases; all else is in setup.cfg.

It is optional: without a C compiler the package installs all the same, and NumPy does the work with
equal results."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "ensembles.summaries._kernels",
            sources=["ensembles/summaries/_kernels.c"],
            depends=["libtrace/include/ensio/bins.h"],
            include_dirs=["libtrace/include"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            # Without contraction to fused operations the results are those of NumPy, to the last bit.
            extra_compile_args=["-std=c11", "-O3", "-ffp-contract=off"],
            libraries=["m"],
            py_limited_api=True,
            optional=True,
        ),
        Extension(
            "ensembles.readers._decode",
            sources=["ensembles/readers/_decode.c"],
            depends=["libtrace/include/ensio/event.h", "libtrace/include/ensio/jobfile.h"],
            include_dirs=["libtrace/include"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=["-std=c11", "-O3"],
            py_limited_api=True,
            optional=True,
        ),
        Extension(
            "ensembles.readers._columns",
            sources=["ensembles/readers/_columns.c"],
            depends=["libtrace/include/ensio/event.h"],
            include_dirs=["libtrace/include"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=["-std=c11", "-O3", "-ffp-contract=off"],
            libraries=["m"],
            py_limited_api=True,
            optional=True,
        ),
        Extension(
            "ensembles.structure._gaps",
            sources=["ensembles/structure/_gaps.c"],
            depends=["libtrace/include/ensio/bins.h"],
            include_dirs=["libtrace/include"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=["-std=c11", "-O3"],
            py_limited_api=True,
            optional=True,
        ),
    ]
)
