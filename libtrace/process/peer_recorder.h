/* peer_recorder.h: a program that is linked with the recorder and runs under the preload library contains two
 * recorders. Each would record its calls, so one of them yields.
 *
 * The preload library also sees calls inside shared libraries, so it records. The exception is a program that contains
 * MPI, because the preload library would not see MPI's calls. */
#ifndef ENSIO_PROCESS_PEER_RECORDER_H
#define ENSIO_PROCESS_PEER_RECORDER_H

#ifndef ENSIO_PRELOAD

/* Whether this recorder yields to the preload library. Called once, at the beginning. */
int ensio_yields_to_peer(void);

/* Forwards the name of a phase or region to the recorder that is active. Returns whether it did. */
int ensio_mark_forwarded(int what, const char *name);

#endif
#endif
