/* lock.h: the recorder's only lock. Signals are blocked while it is held, so that no handler waits for its own thread.
 * errno is restored when it is released. */
#ifndef ENSIO_CORE_LOCK_H
#define ENSIO_CORE_LOCK_H

#include <signal.h>

struct ensio_held {
    sigset_t signals;
    int error;
};
struct ensio_held ensio_lock(void);
void ensio_unlock(struct ensio_held held);

/* Whether this thread holds it. */
int ensio_locked(void);

#endif
