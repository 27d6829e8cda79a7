/* hdf5_settings.h: the plan's hints "hdf5.KEY", which are settings of HDF5's files and datasets. */
#ifndef ENSIO_REPLAY_HDF5_SETTINGS_H
#define ENSIO_REPLAY_HDF5_SETTINGS_H

#include "plan.h"

#include <hdf5.h>

/* Ends the program if the plan has a hint for HDF5 that is not known, or has no sense. */
void hdf5_check_hints(const struct plan *plan);

/* How a file is opened by all tasks. H5Pclose ends it. */
hid_t hdf5_file_properties(const struct plan *plan);

/* How a dataset is made. H5Pclose ends it. */
hid_t hdf5_dataset_properties(const struct plan *plan);

#endif
