/* hdf5_files.h: the layout of an HDF5 file: its head, its metadata, and its datasets. */
#ifndef ENSIO_SIMULATE_HDF5_FILES_H
#define ENSIO_SIMULATE_HDF5_FILES_H

#include "simulation.h"

#define HDF5_ATTRIBUTE_BYTES 8 /* of an attribute whose length the plan does not give */

/* The offset of an operation's data in the file. */
int64_t data_offset(const struct simulation *simulation, const struct plan_operation *operation);

/* Creates a dataset after the existing data; the first one is aligned according to the hints. */
void hdf5_place_dataset(struct simulation *simulation, const struct plan_operation *operation);

/* The position and length of the metadata that a step reads or writes. */
void hdf5_metadata_place(const struct simulation *simulation, const struct plan_operation *operation,
                         const struct step *step, int64_t *offset, int64_t *bytes);

/* Advances past the metadata of this step. */
void hdf5_metadata_done(struct simulation *simulation, const struct plan_operation *operation, const struct step *step);

/* Whether metadata are deferred until the file is closed (hint hdf5.defer_metadata); if so, their length is noted. */
int hdf5_defers(struct simulation *simulation, const struct plan_operation *operation);

#endif
