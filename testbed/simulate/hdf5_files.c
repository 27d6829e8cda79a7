#include "hdf5_files.h"

#include <string.h>

#define SUPERBLOCK_BYTES 96
#define OBJECT_BYTES 512 /* a header with a few messages, without the data of attributes */
#define HEAD_BYTES 2048  /* before the dataset, unless it is aligned */

int64_t data_offset(const struct simulation *simulation, const struct plan_operation *operation)
{
    return operation->offset + (operation->file < 0 ? 0 : simulation->files[operation->file].data_start);
}

static struct file *file_of(const struct simulation *simulation, const struct plan_operation *operation)
{
    return &simulation->files[operation->file];
}

void hdf5_place_dataset(struct simulation *simulation, const struct plan_operation *operation)
{
    struct file *file = file_of(simulation, operation);
    if (file->data_start) { /* another task has created it, or it is a further dataset, behind the last one */
        if (operation->offset + operation->bytes > file->data_bytes)
            file->data_bytes = operation->offset + operation->bytes;
        return;
    }
    const int64_t unit = plan_hint_number(&simulation->plan, "hdf5.alignment", 1);
    const int64_t threshold = plan_hint_number(&simulation->plan, "hdf5.alignment_threshold", 1);
    file->data_start = HEAD_BYTES;
    if (operation->bytes >= threshold)
        file->data_start = (HEAD_BYTES + unit - 1) / unit * unit;
    file->data_bytes = operation->bytes;
}

void hdf5_metadata_place(const struct simulation *simulation, const struct plan_operation *operation,
                         const struct step *step, int64_t *offset, int64_t *bytes)
{
    const struct file *file = file_of(simulation, operation);
    if (step->place == PLACE_FIRST && !file->deferred_bytes) {
        *offset = 0;
        *bytes = SUPERBLOCK_BYTES;
        return;
    }
    const int64_t block = plan_hint_number(&simulation->plan, "hdf5.metadata_block_size", 1);
    *bytes = step->place == PLACE_FIRST ? (file->deferred_bytes + block - 1) / block * block
                                        : OBJECT_BYTES + operation->bytes;
    *offset = SUPERBLOCK_BYTES + file->metadata_bytes;
    if (file->data_start && *offset + *bytes > file->data_start)
        *offset = file->data_start + file->data_bytes + file->metadata_bytes; /* there was no room before the dataset */
}

void hdf5_metadata_done(struct simulation *simulation, const struct plan_operation *operation, const struct step *step)
{
    struct file *file = file_of(simulation, operation);
    if (step->operation != PFS_WRITE)
        return;
    if (step->place == PLACE_METADATA)
        file->metadata_bytes += OBJECT_BYTES + operation->bytes;
    else
        file->deferred_bytes = 0;
}

int hdf5_defers(struct simulation *simulation, const struct plan_operation *operation)
{
    const char *value = plan_hint(&simulation->plan, "hdf5.defer_metadata");
    if (!value || strcmp(value, "1") != 0)
        return 0;
    file_of(simulation, operation)->deferred_bytes += OBJECT_BYTES + operation->bytes;
    return 1;
}
