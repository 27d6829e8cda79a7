/* settings.h: settings, and properties of the process. */
#ifndef ENSIO_CORE_SETTINGS_H
#define ENSIO_CORE_SETTINGS_H

#include <stdint.h>

#define ENSIO_PATH_ROOM 4352 /* the kernel's longest path, and a name */

/* Modes (ENSIO_MODE). */
#define ENSIO_TRACE 0   /* all events, and the summary */
#define ENSIO_PROFILE 1 /* the summary */
#define ENSIO_TAIL 2    /* the summary, and the slowest events */

struct ensio_settings {
    int off;                  /* nothing is recorded */
    const char *folder;       /* ENSIO_DIR, or NULL: make a run directory in the current folder */
    int refuses_used_folder;  /* ENSIO_USED_DIR: nothing is recorded into a folder with an earlier run */
    const char *spool_folder; /* ENSIO_SPOOL, or NULL: spools lie in the run directory */
    const char *exclude;      /* ENSIO_EXCLUDE, or the built-in list */
    const char *layers;       /* ENSIO_LAYERS, or NULL for the default; valid only at the beginning */
    enum { ENSIO_JOB_FILE, ENSIO_JOB_FILE_NONE, ENSIO_JOB_FILE_AND_SPOOLS } job_file; /* ENSIO_JOBFILE */
    const char *callers; /* ENSIO_CALLPATH, or NULL; valid only at the beginning */
    int mode;
    int point_to_point; /* ENSIO_POINT_TO_POINT, or the layer mpimsg: calls that wait for a message are among the events
                         */
    int pcontrol;       /* ENSIO_PCONTROL=ipm: MPI_Pcontrol names regions */
    int python_lines;   /* call sites of Python programs are lines of the script (ENSIO_PYTHON_LINES) */
    int surroundings;   /* counters of the kernel are sampled (ENSIO_SURROUNDINGS) */
    int32_t rank;       /* from the launcher; -1: none */
    uint32_t tasks;     /* 0: unknown */
    char job[128];      /* the job's name for people: batch job, namespace, or pid of the launcher */
    char key[256];      /* an identifier that all processes of one launch share, and no others */
    char host[65];
    char program[ENSIO_PATH_ROOM];
    char command[16384]; /* its words, separated by \x1f */
};
extern struct ensio_settings ensio_settings;

/* Reads the environment and the site's file. Launchers, shells, and programs with another user's rights are not
 * recorded. */
void ensio_settings_read(void);

/* The name of the mode. */
const char *ensio_mode_name(void);

/* Whether a process that this one descends from is recorded. */
int ensio_has_recorded_ancestor(void);

/* Whether the limits of memory leave the recorder of a program too little, which a line says. */
int ensio_lacks_memory(const char *program);

/* Prints a sentence of three pieces to standard error; of several tasks only rank 0 prints it. */
void ensio_say(const char *before, const char *what, const char *after);

/* The start time of a process in clock ticks since boot; 0 if it is unknown. */
uint64_t ensio_process_start(uint32_t pid);

#endif
