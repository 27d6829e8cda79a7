/* site.h: texts that the recorder and the Python commands share: what a site's file of settings may hold, launchers.
 *
 * A line is NAME=value, "always NAME=value", empty, or begins with '#'. After "always" the value holds in any case.
 * Else it is a default: it holds where the environment has no variable of this name and, of the recorder, in programs
 * whose user has not asked for a recording by ENSIO_DIR, as `ensio run` does. */
#ifndef ENSIO_SITE_H
#define ENSIO_SITE_H

/* ENSIO_CONF names another file; empty, none is read. It must belong to root or the user, and others may not write it.
 */
#define ENSIO_SITE_FILE "/etc/ensio.conf"
#define ENSIO_SITE_FILE_BYTES 16384 /* at most */

/* Programs between the user's command and the tasks, which are not recorded. */
#define ENSIO_LAUNCHERS \
    "mpirun mpiexec orterun orted prte prted prterun prun mpirun.openmpi mpiexec.openmpi mpirun.mpich mpiexec.mpich " \
    "mpiexec.hydra mpirun.hydra hydra_pmi_proxy hydra_bstrap_proxy srun salloc sbatch slurmstepd aprun jsrun ssh sh " \
    "bash dash zsh ksh csh tcsh env time timeout nohup nice ionice numactl taskset setsid stdbuf sudo xargs"

/* Names that it may hold, */
#define ENSIO_SITE_NAMES \
    "ENSIO_ANONYMISE ENSIO_ARGUMENTS ENSIO_BANNER ENSIO_CACHE ENSIO_CALLPATH ENSIO_CHILDREN ENSIO_EXCLUDE " \
    "ENSIO_HISTORY ENSIO_JOBFILE ENSIO_LAYERS ENSIO_MAX_BYTES ENSIO_MODE ENSIO_PCONTROL ENSIO_POINT_TO_POINT " \
    "ENSIO_PRELOAD ENSIO_PROGRAMS ENSIO_PYTHON_LINES ENSIO_SPOOL ENSIO_SURROUNDINGS ENSIO_USED_DIR ENSIO_USERS"

/* and those of which users have the last word: no "always". */
#define ENSIO_SITE_USERS_OWN "ENSIO_DIR ENSIO_DISABLE"

#endif
