/* peer_recorder.h: a program that was linked with the recorder and runs under the preload library as well has two of
 * them. Each would record its calls; one stands aside.
 *
 * The preload library sees the calls inside shared libraries too, and is the one that records; but not where MPI is a
 * part of the program, for then it would not see MPI's.
 */
#ifndef ENSIO_PROCESS_PEER_RECORDER_H
#define ENSIO_PROCESS_PEER_RECORDER_H

#ifndef ENSIO_PRELOAD

/* Whether the preload library records this process, and this recorder does not. Asked once, at the beginning. */
int ensio_yields_to_peer(void);

/* Names of phases and regions, which the program tells this recorder, go to the one that records. Returns whether they
 * did. */
int ensio_mark_forwarded(int what, const char *name);

#endif
#endif
