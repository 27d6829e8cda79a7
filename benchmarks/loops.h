/* loops.h: the measured calls, each of 8 bytes, in loops of three kinds: the call untraced; the floor (the call, two
 * clock readings and one 48-byte store into a reserved, file-backed shared mapping: nothing that survives kill -9 can
 * cost less); and the call recorded by ensio. */
#ifndef LOOPS_H
#define LOOPS_H

struct loops {
    const char *name;
    const char *target;
    void (*untraced)(int calls);
    void (*at_floor)(int calls);
    void (*recorded)(int calls);
};

extern const struct loops all_loops[];
extern const int loops_count;

const struct loops *loops_named(const char *name);

/* Opens the files for the calls of this thread, and a new window for the floor, in a folder. */
void loops_begin(const char *folder);
void loops_end(void);

/* Before a loop: resets positions to the start of the file; makes a window with room for the events. */
void loops_rewind(int calls);

#endif
