/* cells.h: the cells of the summary, in windows of the spool, with additional state of the recorder. */
#ifndef ENSIO_SUMMARY_CELLS_H
#define ENSIO_SUMMARY_CELLS_H

#include <ensio/event.h>
#include <stdint.h>

struct ensio_place {
    struct ensio_cell *cell;
    struct ensio_place *next_changed; /* of those whose cell has no sum */
    uint64_t *octaves[ENSIO_OCTAVES]; /* counts of each octave, or NULL */
    uint64_t least;      /* ticks: the shortest of the longest calls that are kept; 0: there is room for more */
    uint64_t usual_rate; /* rate for which the next two are valid; 0: invalid, the extremes of the cell have changed */
    /* Durations in [usual_low_ticks, usual_low_ticks + usual_span_ticks] are between minimum and maximum of the cell,
     * ... */
    uint64_t usual_low_ticks;
    uint64_t usual_span_ticks; /* ... and not among the longest */
    uint64_t slow_due;         /* count at which slow_bin is updated */
    uint32_t slow_bin;         /* calls in this bin or above are slower than 99 % of calls */
    uint32_t key;
    uint32_t level; /* 0: sizes and ordinals are distinguished; 1: sizes; 2: neither */
};

/* The caller of the following functions holds the lock. */

/* Makes a summary in this process's spool if it has none: 0, or -1 without space. */
int ensio_cells_begin(void);

/* The cell for a kind of calls. Beyond the limits, the cell of a coarser class; NULL without space. */
struct ensio_place *ensio_cell_find(uint16_t call, uint8_t size_class, uint8_t ordinal_class);

/* The bin counts of an octave. Without space for them, `place` becomes that of a coarser cell; NULL without any
 * space. */
uint64_t *ensio_cell_octave(struct ensio_place **place, uint32_t octave);

/* The cell of a place loses its sum, until the cells that have changed are summed: readers find damage by it. */
void ensio_cell_changes(struct ensio_place *place);
void ensio_cells_sum(void);

/* The present cells go into a job file. Later calls get new cells in new windows. */
void ensio_cells_close(void);

/* All cells of this spool, including closed ones. */
void ensio_cells_each(void (*each)(const struct ensio_cell *cell, void *state), void *state);

/* Forgets the cells of a parent process. */
void ensio_cells_forget(void);

#endif
