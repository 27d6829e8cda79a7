"""Uses netCDF4 for both formats in the current folder, and prints what it read."""

import netCDF4
import numpy as np

for name, kind in (("four.nc", "NETCDF4"), ("classic.nc", "NETCDF3_CLASSIC")):
    with netCDF4.Dataset(name, "w", format=kind) as data:
        data.createDimension("time", None)
        data.createDimension("x", 100)
        place = data.createGroup("group") if kind == "NETCDF4" else data
        field = place.createVariable("field", "f8", ("time", "x"))
        field.units = "metre"
        for step in range(3):
            field[step] = np.arange(100) + step
        place.createVariable("index", "i2", ("x",))[:40] = np.arange(40)
    with netCDF4.Dataset(name) as data:
        place = data["group"] if kind == "NETCDF4" else data
        print(place["field"][1, ::2].sum(), place["field"][2].mean(), place["field"].units)
