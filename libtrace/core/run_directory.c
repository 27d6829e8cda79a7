#include "run_directory.h"

#include "clock.h"
#include "raw.h"
#include "text.h"

#include <string.h>
#include <sys/auxv.h>

char ensio_run_directory[ENSIO_PATH_ROOM];

/* How much older than its own launcher a process may find the marker of its job: the daemons of a launcher do not start at
 * the same moment on all nodes, and their clocks differ. */
#define MARKER_SLACK_S 60

/* Adds a time as 20260131T235959Z. The calendar is counted in years that begin in March, so that leap days come last. */
static void add_utc(struct ensio_string *string, uint64_t unix_s)
{
    uint64_t day = unix_s / 86400 + 719468, second = unix_s % 86400;
    uint64_t era = day / 146097, day_of_era = day % 146097;
    uint64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t march_month = (5 * day_of_year + 2) / 153;
    uint64_t month = march_month < 10 ? march_month + 3 : march_month - 9;
    uint64_t year = year_of_era + era * 400 + (month <= 2);
    uint64_t date = year * 10000 + month * 100 + day_of_year - (153 * march_month + 2) / 5 + 1;
    uint64_t clock = 1000000 + second / 3600 * 10000 + second / 60 % 60 * 100 + second % 60;
    char digits[24];
    struct ensio_string clock_text = ensio_string_in(digits, sizeof digits);
    ensio_add_number(&clock_text, clock);
    ensio_add_number(string, date);
    ensio_add(string, "T");
    ensio_add(string, digits + 1); /* without the leading 1, which kept the zeros */
    ensio_add(string, "Z");
}

/* When this process's launcher was started. */
static uint64_t launch_unix_s(uint64_t now_s)
{
    uint64_t per_second = getauxval(AT_CLKTCK), up_s = ensio_clock_ns(CLOCK_BOOTTIME) / 1000000000U;
    uint64_t started = ensio_process_start((uint32_t)syscall(SYS_getppid));
    return started && per_second ? now_s - up_s + started / per_second : 0;
}

static int make_folder(const char *path, unsigned mode)
{
    long made = ENSIO_RAW(SYS_mkdirat, AT_FDCWD, path, mode);
    struct stat found;
    if (made != -EEXIST)
        return (int)made;
    made = ENSIO_RAW(SYS_newfstatat, AT_FDCWD, path, &found, 0);
    return made ? (int)made : S_ISDIR(found.st_mode) ? 0 : -ENOTDIR;
}

/* Makes a folder and those above it; only the folder itself is private. */
static int make_folders(char *path)
{
    int made = make_folder(path, 0700);
    if (made != -ENOENT)
        return made;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        made = make_folder(path, 0777);
        *slash = '/';
        if (made)
            return made;
    }
    return make_folder(path, 0700);
}

static int current_folder(struct ensio_string *path)
{
    char current[ENSIO_PATH_ROOM];
    long got = ENSIO_RAW(SYS_getcwd, current, sizeof current);
    if (got < 0)
        return (int)got;
    ensio_add(path, current);
    if (path->length > 1)
        ensio_add(path, "/");
    return 0;
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037U;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211U;
    return hash;
}

/* Whether the symbolic link at `marker` was left by this user, and by a process of this launch rather than of an older one
 * with the same key. */
static int marker_is_ours(const char *marker, uint64_t launched_s)
{
    struct stat found;
    return ENSIO_RAW(SYS_newfstatat, AT_FDCWD, marker, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode) &&
           found.st_uid == (uid_t)syscall(SYS_geteuid) &&
           (uint64_t)found.st_mtim.tv_sec + MARKER_SLACK_S >= launched_s;
}

/* All processes of a launch name the same marker; the first to make it decides what the run directory is called. A marker
 * that an older launch left under the same name is passed over by all of them alike. */
static int agree_on_name(const struct ensio_string *folder, struct ensio_string *name, uint64_t now_s)
{
    uint64_t launched_s = launch_unix_s(now_s);
    char path[ENSIO_PATH_ROOM], chosen[256];
    for (uint64_t attempt = 0; attempt < 1000; attempt++) {
        struct ensio_string marker = ensio_string_in(path, sizeof path);
        ensio_add(&marker, folder->text);
        ensio_add(&marker, ".ensio-");
        ensio_add_number(&marker, hash_of(ensio_settings.key));
        ensio_add(&marker, "-");
        ensio_add_number(&marker, attempt);
        long made = ENSIO_RAW(SYS_symlinkat, name->text, AT_FDCWD, marker.text);
        if (made != -EEXIST)
            return (int)made;
        if (!marker_is_ours(marker.text, launched_s))
            continue;
        long length = ensio_raw_readlink(marker.text, chosen, sizeof chosen - 1);
        if (length < 0)
            return (int)length;
        chosen[length] = '\0';
        if (strncmp(chosen, "ensio-", 6) != 0 || strchr(chosen, '/'))
            continue;
        name->length = 0;
        ensio_add(name, chosen);
        return 0;
    }
    return -EEXIST;
}

int ensio_run_directory_join(void)
{
    struct ensio_string path = ensio_string_in(ensio_run_directory, sizeof ensio_run_directory);
    if (ensio_settings.folder) {
        int placed = ensio_settings.folder[0] == '/' ? 0 : current_folder(&path);
        ensio_add(&path, ensio_settings.folder);
        return placed ? placed : path.full ? -ENAMETOOLONG : make_folders(ensio_run_directory);
    }
    char buffer[256];
    struct ensio_string name = ensio_string_in(buffer, sizeof buffer);
    uint64_t now_s = ensio_clock_ns(CLOCK_REALTIME) / 1000000000U;
    ensio_add(&name, "ensio-");
    ensio_add_name(&name, ensio_base_name(ensio_settings.program));
    ensio_add(&name, "-");
    ensio_add(&name, ensio_settings.job);
    ensio_add(&name, "-");
    add_utc(&name, now_s);
    int placed = current_folder(&path);
    if (!placed && ensio_settings.rank >= 0)
        placed = agree_on_name(&path, &name, now_s);
    ensio_add(&path, name.text);
    if (placed || path.full || name.full)
        return placed ? placed : -ENAMETOOLONG;
    /* Joined or made, it must be a folder of this user's own, not a link that somebody laid here. */
    int made = make_folder(ensio_run_directory, 0700);
    struct stat found;
    if (!made)
        made = (int)ENSIO_RAW(SYS_newfstatat, AT_FDCWD, ensio_run_directory, &found, AT_SYMLINK_NOFOLLOW);
    if (!made && (!S_ISDIR(found.st_mode) || found.st_uid != (uid_t)syscall(SYS_geteuid)))
        made = -EPERM;
    return made;
}
