/* cells.h: the cells of the summary, in windows of the spool, and what the recorder knows about them beside. */
#ifndef ENSIO_SUMMARY_CELLS_H
#define ENSIO_SUMMARY_CELLS_H

#include <ensio/event.h>
#include <stdint.h>

struct ensio_place {
    struct ensio_cell *cell;
    uint64_t *octaves[ENSIO_OCTAVES]; /* the counts of each, or NULL */
    uint64_t least;      /* ticks: the shortest of the longest calls that are kept; 0: there is room for more */
    uint64_t usual_rate; /* for which the next two are right; 0: for none, the cell's extremes have changed */
    /* durations from here on, over this span, are neither shorter nor longer than all before, ... */
    uint64_t usual_low_ticks;
    uint64_t usual_span_ticks; /* ... nor among the longest */
    uint64_t slow_due;         /* count at which slow_bin is to be found again */
    uint32_t slow_bin;         /* calls in this bin or above are slower than 99 of 100 */
    uint32_t key;
    uint32_t level; /* 0: sizes and ordinals are told apart; 1: sizes; 2: calls only */
};

/* All that follows is called with the lock held. */

/* Sees to it that there is a summary in this process's spool: 0, or -1 where no space is left. */
int ensio_cells_begin(void);

/* The cell for calls of a kind. Where no more can be told apart, that of a coarser class; NULL where no space is left.
 */
struct ensio_place *ensio_cell_find(uint16_t call, uint8_t size_class, uint8_t ordinal_class);

/* The counts of the octave that a bin lies in. Where there is no more space for it, `place` becomes that of a coarser
 * cell; NULL where no space is left at all. */
uint64_t *ensio_cell_octave(struct ensio_place **place, uint32_t octave);

/* What the summary holds goes into a job file: calls that follow get cells of their own, in windows of their own. */
void ensio_cells_close(void);

/* All cells that this spool has, those that were closed too. */
void ensio_cells_each(void (*each)(const struct ensio_cell *cell, void *state), void *state);

/* The spool is another process's. */
void ensio_cells_forget(void);

#endif
