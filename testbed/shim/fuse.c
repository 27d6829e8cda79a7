/* ensio-pfs-fuse: a folder as a separate file system whose calls take the model's time: for static programs, and
 * whatever else no library is preloaded into.
 *
 *   ensio-pfs-fuse MODEL BACKING POINT     MODEL: the folder with the state; in the foreground until it is unmounted
 *
 * Reads and writes come as the program makes them (direct_io), up to what the kernel takes in one request. */
#include "fuse_operations.h"

#include "fuse_callers.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_THREADS 4096 /* each delayed request occupies one */
#define LARGEST_REQUEST 1048576

struct shim_state *shim_fuse_state;
int shim_fuse_backing;

struct shim_ticket shim_fuse_begin(struct shim_call call)
{
    struct shim_caller caller;
    if (!shim_fuse_caller(fuse_get_context()->pid, &caller))
        return (struct shim_ticket){.slot = -1};
    const struct shim_ticket ticket = shim_begin(shim_fuse_state, &caller, &call);
    shim_fuse_caller_update(&caller);
    return ticket;
}

int shim_fuse_give_away(const char *path)
{
    const struct fuse_context *context = fuse_get_context();
    return geteuid() == 0
               ? fchownat(shim_fuse_backing, shim_fuse_relative(path), context->uid, context->gid, AT_SYMLINK_NOFOLLOW)
               : 0;
}

static void *fs_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
    connection->max_write = LARGEST_REQUEST;
    config->entry_timeout = 1;
    config->negative_timeout = 0;
    config->attr_timeout = 0;
    config->nullpath_ok = 1;
    return NULL;
}

static const struct fuse_operations operations = {
    .init = fs_init,
    .getattr = fs_getattr,
    .readlink = fs_readlink,
    .mkdir = fs_mkdir,
    .unlink = fs_unlink,
    .rmdir = fs_rmdir,
    .symlink = fs_symlink,
    .rename = fs_rename,
    .link = fs_link,
    .chmod = fs_chmod,
    .chown = fs_chown,
    .truncate = fs_truncate,
    .utimens = fs_utimens,
    .open = fs_open,
    .create = fs_create,
    .read = fs_read,
    .write = fs_write,
    .fsync = fs_fsync,
    .flush = fs_flush,
    .release = fs_release,
    .statfs = fs_statfs,
    .opendir = fs_opendir,
    .readdir = fs_readdir,
    .releasedir = fs_releasedir,
    .fallocate = fs_fallocate,
};

static int run(const char *point)
{
    char *everybody[] = {"ensio-pfs-fuse", "-o", "fsname=ensio-pfs,default_permissions,allow_other", NULL};
    char *own[] = {"ensio-pfs-fuse", "-o", "fsname=ensio-pfs,default_permissions", NULL};
    struct fuse_args arguments = FUSE_ARGS_INIT(3, geteuid() == 0 ? everybody : own);
    struct fuse_loop_config *loop = fuse_loop_cfg_create();
    struct fuse *fuse = fuse_new(&arguments, &operations, sizeof operations, NULL);
    int status = 1;
    if (!fuse || !loop)
        return 1;
    fuse_loop_cfg_set_max_threads(loop, MOST_THREADS);
    fuse_loop_cfg_set_idle_threads(loop, 16);
    if (fuse_mount(fuse, point) == 0) {
        if (fuse_set_signal_handlers(fuse_get_session(fuse)) == 0)
            status = fuse_loop_mt(fuse, loop) < 0;
        fuse_unmount(fuse);
    }
    fuse_destroy(fuse);
    fuse_loop_cfg_destroy(loop);
    return status;
}

int main(int argc, char **argv)
{
    int error;
    if (argc != 4) {
        fputs("ensio-pfs-fuse: usage: MODEL BACKING POINT\n", stderr);
        return 2;
    }
    shim_fuse_state = shim_state_map(argv[1], &error);
    shim_fuse_backing = open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!shim_fuse_state || shim_fuse_backing < 0) {
        fprintf(stderr, "ensio-pfs-fuse: %s: %s\n", shim_fuse_state ? argv[2] : argv[1],
                strerror(shim_fuse_state ? errno : error));
        return 2;
    }
    umask(0);
    return run(argv[3]);
}
