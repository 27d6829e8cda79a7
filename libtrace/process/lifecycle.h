/* lifecycle.h: the recorder's beginning and end in a process. */
#ifndef ENSIO_PROCESS_LIFECYCLE_H
#define ENSIO_PROCESS_LIFECYCLE_H

/* Marks the recording as whole, or removes the spool if all of it is in the job file. Calls that follow are recorded
 * all the same. */
void ensio_end(void);

/* Another process was started that shares this one's open files. */
void ensio_spawned(void);

/* The call that follows puts another program, or a child, in this process's place: nothing more is recorded here,
 * unless it fails. Returns whether that is to be taken back then. */
int ensio_hand_over(void);
void ensio_take_back(void);

/* The program is about to give up rights, or to change its root or user: a spool is made now if there is none yet, for
 * later it may not be possible. */
void ensio_rights_end(void);

/* MPI says which task this process is. */
void ensio_set_rank(int rank, int tasks);

#endif
