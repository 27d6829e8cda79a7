#include "free_space.h"

#include "mounts.h"
#include "run_directory.h"

#include <core/bounded_string.h>
#include <core/rawsys.h>

#include <string.h>
#include <sys/quota.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#define QUOTA_UNIT_BYTES 1024

static struct {
    int known;
    struct statfs first;   /* the file system when the spool was made */
    char source[256];      /* its block device; "": the kernel reports no quotas for it */
    uint32_t owner, group; /* of the spool */
} place;

static int is_here(const struct ensio_mount *mount, void *device)
{
    const size_t length = strlen(mount->source);
    if (strcmp(mount->device, device) != 0 || length >= sizeof place.source)
        return 0;
    memcpy(place.source, mount->source, length + 1);
    return 1;
}

/* Uses the space that a quota leaves, if it is less than that of the file system. */
static int ask_quota(int kind, uint32_t id, struct ensio_free_space *space)
{
    struct dqblk quota;
    const unsigned command = (unsigned)Q_GETQUOTA << SUBCMDSHIFT | (unsigned)kind; /* QCMD shifts into the sign bit */
    memset(&quota, 0, sizeof quota);
    if (ENSIO_RAW(SYS_quotactl, command, place.source, id, &quota) != 0)
        return 0;
    const uint64_t blocks = quota.dqb_bhardlimit ? quota.dqb_bhardlimit : quota.dqb_bsoftlimit;
    const uint64_t limit = blocks * QUOTA_UNIT_BYTES,
                   left = quota.dqb_curspace < limit ? limit - quota.dqb_curspace : 0;
    if (blocks && left < space->free)
        *space = (struct ensio_free_space){.total = limit, .free = left};
    return blocks != 0;
}

static int ask_quotas(struct ensio_free_space *space)
{
    return place.source[0] ? ask_quota(USRQUOTA, place.owner, space) + ask_quota(GRPQUOTA, place.group, space) : 0;
}

void ensio_free_space_begin(void)
{
    struct stat folder;
    struct ensio_free_space unused = {0};
    char device[48];
    place.known = ENSIO_RAW(SYS_statfs, ensio_spool_directory, &place.first) == 0;
    place.source[0] = '\0';
    if (!place.known || ENSIO_RAW(SYS_newfstatat, AT_FDCWD, ensio_spool_directory, &folder, 0) != 0)
        return;
    place.owner = (uint32_t)syscall(SYS_geteuid);
    place.group = folder.st_mode & S_ISGID ? folder.st_gid : (uint32_t)syscall(SYS_getegid);
    struct ensio_string number = ensio_string_in(device, sizeof device);
    ensio_add_number(&number, major(folder.st_dev));
    ensio_add(&number, ":");
    ensio_add_number(&number, minor(folder.st_dev));
    ensio_each_mount(is_here, device);
    if (place.source[0] != '/' || ask_quotas(&unused) == 0)
        place.source[0] = '\0'; /* no quota to query later */
}

int ensio_free_space_query(struct ensio_free_space *space)
{
    struct statfs now;
    if (!place.known || ENSIO_RAW(SYS_statfs, ensio_spool_directory, &now) != 0 || now.f_type != place.first.f_type ||
        memcmp(&now.f_fsid, &place.first.f_fsid, sizeof now.f_fsid) != 0)
        return -1;
    const uint64_t unit = now.f_frsize > 0 ? (uint64_t)now.f_frsize : (uint64_t)now.f_bsize;
    *space = (struct ensio_free_space){.total = now.f_blocks * unit, .free = now.f_bavail * unit};
    ask_quotas(space);
    return space->total ? 0 : -1;
}
