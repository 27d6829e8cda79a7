/* hdf5_settings.h: the plan's hints "hdf5.KEY", which are settings of HDF5's files and datasets. */
#ifndef ENSIO_REPLAY_HDF5_SETTINGS_H
#define ENSIO_REPLAY_HDF5_SETTINGS_H

#include "plan.h"

#include <hdf5.h>

/* Ends the program if the plan has an unknown or invalid hint for HDF5. */
void hdf5_check_hints(const struct plan *plan);

/* Properties for opening a file by all tasks. The caller closes them by H5Pclose. */
hid_t hdf5_file_properties(const struct plan *plan);

/* Properties for creating a dataset. The caller closes them by H5Pclose. */
hid_t hdf5_dataset_properties(const struct plan *plan);

#endif
