/* hdf5_files.h: where the parts of an HDF5 file lie: its head, its metadata, and its one dataset. */
#ifndef ENSIO_SIMULATE_HDF5_FILES_H
#define ENSIO_SIMULATE_HDF5_FILES_H

#include "simulation.h"

#define HDF5_ATTRIBUTE_BYTES 8 /* of an attribute whose length the plan does not give */

/* Where an operation's data begin in the file. */
int64_t data_offset(const struct simulation *simulation, const struct plan_operation *operation);

/* A dataset is made: it comes behind what is there, aligned as the hints want it. */
void hdf5_place_dataset(struct simulation *simulation, const struct plan_operation *operation);

/* Where the metadata lie that a step reads or writes, and how long they are. */
void hdf5_metadata_place(const struct simulation *simulation, const struct plan_operation *operation,
                         const struct step *step, int64_t *offset, int64_t *bytes);

/* They are being read or written: the next come behind them. */
void hdf5_metadata_done(struct simulation *simulation, const struct plan_operation *operation, const struct step *step);

/* Whether metadata are kept back until the file is closed (hint hdf5.defer_metadata); if so, these are noted. */
int hdf5_defers(struct simulation *simulation, const struct plan_operation *operation);

#endif
