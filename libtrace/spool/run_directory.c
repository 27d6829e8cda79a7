#include "run_directory.h"

#include <core/bounded_string.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/site_settings.h>
#include <time/clock.h>

#include <dirent.h>
#include <string.h>
#include <sys/auxv.h>

char ensio_run_directory[ENSIO_PATH_ROOM], ensio_spool_directory[ENSIO_PATH_ROOM];

/* How much older than its launcher a process may find the marker of its job: a launcher's daemons do not start
 * simultaneously on all nodes, and their clocks differ. */
#define MARKER_SLACK_S 60

/* How much older than its launch a record is that another launch has left. */
#define EARLIER_S 1

/* A time as 20260131235959. Years begin in March here, so that leap days come last. */
static uint64_t utc(uint64_t unix_s)
{
    uint64_t day = unix_s / 86400 + 719468, second = unix_s % 86400;
    uint64_t era = day / 146097, day_of_era = day % 146097;
    uint64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t march_month = (5 * day_of_year + 2) / 153;
    uint64_t month = march_month < 10 ? march_month + 3 : march_month - 9;
    uint64_t year = year_of_era + era * 400 + (month <= 2);
    uint64_t date = year * 10000 + month * 100 + day_of_year - (153 * march_month + 2) / 5 + 1;
    return date * 1000000 + second / 3600 * 10000 + second / 60 % 60 * 100 + second % 60;
}

/* Adds some of the 14 digits of a time. */
static void add_digits(struct ensio_string *string, uint64_t unix_s, uint32_t first, uint32_t count)
{
    char digits[24];
    struct ensio_string all = ensio_string_in(digits, sizeof digits);
    ensio_add_number(&all, utc(unix_s));
    ensio_add_bytes(string, digits + first, count);
}

/* The start time of this process's launcher; of a process without one, its own. */
static uint64_t launch_unix_s(uint64_t now_s)
{
    uint64_t per_second = getauxval(AT_CLKTCK), up_s = ensio_clock_ns(CLOCK_BOOTTIME) / 1000000000U;
    uint64_t started = ensio_process_start(ensio_settings.rank >= 0 ? (uint32_t)syscall(SYS_getppid) : ensio_raw_pid());
    return started && per_second ? now_s - up_s + started / per_second : 0;
}

static int make_folder(const char *path, unsigned mode)
{
    long made = ENSIO_RAW(SYS_mkdirat, AT_FDCWD, path, mode);
    struct stat found;
    if (made != -EEXIST)
        return (int)made;
    /* A link is followed only if no other user can have made it. */
    made = ENSIO_RAW(SYS_newfstatat, AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW);
    if (!made && S_ISLNK(found.st_mode) && found.st_uid && found.st_uid != (uid_t)syscall(SYS_geteuid))
        return -EPERM;
    made = ENSIO_RAW(SYS_newfstatat, AT_FDCWD, path, &found, 0);
    return made ? (int)made : S_ISDIR(found.st_mode) ? 0 : -ENOTDIR;
}

/* Whether the folder around `path` is there under the kernel's own name, which leads through no link. */
static int is_real(char *path)
{
    char own[ENSIO_PATH_ROOM], *const slash = strrchr(path, '/');
    *slash = '\0';
    const int fd = ensio_private_open(path, O_PATH | O_DIRECTORY, 0);
    *slash = '/';
    const long length = fd < 0 ? 0 : ensio_descriptor_name(fd, own, sizeof own);
    if (fd >= 0)
        ensio_raw_close(fd);
    return length > 0 && length == slash - path && memcmp(own, path, (size_t)length) == 0;
}

/* Whether the way to a folder leads through a link that another user made in a folder such as /tmp, where all users
 * can. The kernel follows none where fs.protected_symlinks is set. */
static int is_led_astray(char *path)
{
    struct stat around, found;
    int is_foreign = 0;
    if (is_real(path))
        return 0;
    long failed = ENSIO_RAW(SYS_newfstatat, AT_FDCWD, *path == '/' ? "/" : ".", &around, 0);
    for (char *slash = strchr(path + 1, '/'); slash && !failed && !is_foreign; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        failed = ENSIO_RAW(SYS_newfstatat, AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW);
        is_foreign = !failed && S_ISLNK(found.st_mode) && (around.st_mode & S_ISVTX) && (around.st_mode & S_IWOTH) &&
                     found.st_uid != around.st_uid && found.st_uid != (uid_t)syscall(SYS_geteuid);
        if (!failed && S_ISLNK(found.st_mode))
            failed = ENSIO_RAW(SYS_newfstatat, AT_FDCWD, path, &found, 0);
        around = found;
        *slash = '/';
    }
    return is_foreign;
}

/* Makes a folder and its parents; only the folder itself is private. */
static int make_folders(char *path)
{
    int made = is_led_astray(path) ? -EPERM : make_folder(path, 0700);
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

/* Whether this user left the symbolic link at `marker`, in a process of this launch and not of an older one with the
 * same key. */
static int marker_is_ours(const char *marker, uint64_t launched_s)
{
    struct stat found;
    return ENSIO_RAW(SYS_newfstatat, AT_FDCWD, marker, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode) &&
           found.st_uid == (uid_t)syscall(SYS_geteuid) && (uint64_t)found.st_mtim.tv_sec + MARKER_SLACK_S >= launched_s;
}

/* Reads the marker of a launch: 0; -ENOENT if there is none yet; -EEXIST if another launch left it. */
static int read_marker(const char *marker, uint64_t launched_s, struct ensio_string *name)
{
    char chosen[256];
    long length = ensio_raw_readlink(marker, chosen, sizeof chosen - 1);
    if (length == -ENOENT)
        return -ENOENT;
    if (length < 0 || !marker_is_ours(marker, launched_s))
        return -EEXIST;
    chosen[length] = '\0';
    if (strncmp(chosen, "ensio-", 6) != 0 || strchr(chosen, '/'))
        return -EEXIST;
    name->length = 0;
    ensio_add(name, chosen);
    return 0;
}

/* Makes a new folder; if the name is taken, a number is appended. */
static int make_new_folder(struct ensio_string *path, struct ensio_string *name)
{
    uint32_t stem = path->length, length = name->length;
    for (uint64_t number = 1; number < 1000; number++) {
        name->length = length;
        if (number > 1) {
            ensio_add(name, "-");
            ensio_add_number(name, number);
        }
        path->length = stem;
        ensio_add(path, name->text);
        long made = ENSIO_RAW(SYS_mkdirat, AT_FDCWD, path->text, 0700);
        if (made != -EEXIST)
            return (int)made;
    }
    return -EEXIST;
}

/* All processes of a launch use the same marker, a symbolic link. The first one to create it decides the name of the
 * run directory. All of them ignore a marker that an older launch left under the same name. */
static int agree_on_folder(struct ensio_string *path, struct ensio_string *name, uint64_t now_s)
{
    uint64_t launched_s = launch_unix_s(now_s);
    uint32_t stem = path->length;
    char buffer[ENSIO_PATH_ROOM];
    for (uint64_t attempt = 0; attempt < 1000; attempt++) {
        struct ensio_string marker = ensio_string_in(buffer, sizeof buffer);
        ensio_add_bytes(&marker, path->text, stem);
        ensio_add(&marker, ".ensio-");
        ensio_add_number(&marker, ensio_hash(ensio_settings.key));
        ensio_add(&marker, "-");
        ensio_add_number(&marker, attempt);
        int found = read_marker(marker.text, launched_s, name);
        if (found == -ENOENT) {
            path->length = stem;
            int made = make_new_folder(path, name);
            if (made)
                return made;
            long laid = ENSIO_RAW(SYS_symlinkat, name->text, AT_FDCWD, marker.text);
            if (laid == 0)
                return 0;
            ENSIO_RAW(SYS_unlinkat, AT_FDCWD, path->text, AT_REMOVEDIR);
            if (laid != -EEXIST)
                return (int)laid;
            found = read_marker(marker.text, launched_s, name); /* another process was quicker */
        }
        path->length = stem;
        if (found == 0) {
            ensio_add(path, name->text);
            return 0;
        }
    }
    return -EEXIST;
}

/* It must be a folder of this user, not a link or a folder that another user made. */
static int belongs_to_us(const char *path)
{
    struct stat found;
    int seen = (int)ENSIO_RAW(SYS_newfstatat, AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW);
    return seen ? seen : S_ISDIR(found.st_mode) && found.st_uid == (uid_t)syscall(SYS_geteuid) ? 0 : -EPERM;
}

static int is_record(const char *name)
{
    const size_t length = strlen(name);
    return (length > 6 && strcmp(name + length - 6, ".spool") == 0) ||
           (length > 6 && strcmp(name + length - 6, ".ensio") == 0);
}

static int is_earlier_record(int folder, const struct dirent64 *entry, void *launched_s)
{
    struct stat status;
    return is_record(entry->d_name) &&
           ENSIO_RAW(SYS_newfstatat, folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           (uint64_t)status.st_mtim.tv_sec + EARLIER_S <= *(uint64_t *)launched_s;
}

/* Whether a folder has a record that was complete before this launch began. Clocks of file servers may be late. */
static int holds_earlier_record(const char *folder)
{
    uint64_t launched_s = launch_unix_s(ensio_clock_ns(CLOCK_REALTIME) / 1000000000U);
    return ensio_private_each_entry(folder, is_earlier_record, &launched_s) && !ensio_has_recorded_ancestor();
}

/* Adds what stands for a letter after '%' in ENSIO_DIR: 1, or 0 if it is none of them. The date is that of the launch,
 * so that all of its processes have the same; 0: it was not asked for before. */
static int add_field(struct ensio_string *path, char letter, uint64_t *date_s)
{
    static const char dates[] = "Ymd"; /* with the digits of a time: 4 from 0, 2 from 4, 2 from 6 */
    const char *const date = letter ? strchr(dates, letter) : NULL;
    char name[64];
    struct ensio_string user = ensio_string_in(name, sizeof name);
    if (date) {
        const uint64_t now_s = ensio_clock_ns(CLOCK_REALTIME) / 1000000000U;
        if (!*date_s && !(*date_s = launch_unix_s(now_s)))
            *date_s = now_s;
        add_digits(path, *date_s, date == dates ? 0 : 2 + 2 * (uint32_t)(date - dates), date == dates ? 4 : 2);
    } else if (letter == 'u') {
        ensio_add_user(&user);
        ensio_add_name(path, name);
    } else if (letter == 'p') {
        ensio_add_name(path, ensio_base_name(ensio_settings.program));
    } else if (letter == 'j') {
        ensio_add(path, ensio_settings.job);
    } else if (letter == '%') {
        ensio_add(path, "%");
    } else {
        return 0;
    }
    return 1;
}

static void add_pattern(struct ensio_string *path, const char *pattern)
{
    uint64_t date_s = 0;
    for (; *pattern; pattern++) {
        if (*pattern == '%' && add_field(path, pattern[1], &date_s))
            pattern++;
        else
            ensio_add_bytes(path, pattern, 1);
    }
}

static int join_run_directory(void)
{
    struct ensio_string path = ensio_string_in(ensio_run_directory, sizeof ensio_run_directory);
    if (ensio_settings.folder) {
        int placed = ensio_settings.folder[0] == '/' ? 0 : current_folder(&path);
        add_pattern(&path, ensio_settings.folder);
        placed = placed ? placed : path.full ? -ENAMETOOLONG : make_folders(ensio_run_directory);
        return !placed && ensio_settings.refuses_used_folder && holds_earlier_record(ensio_run_directory) ? -ENOTEMPTY
                                                                                                          : placed;
    }
    char buffer[256];
    struct ensio_string name = ensio_string_in(buffer, sizeof buffer);
    uint64_t now_s = ensio_clock_ns(CLOCK_REALTIME) / 1000000000U;
    ensio_add(&name, "ensio-");
    ensio_add_name(&name, ensio_base_name(ensio_settings.program));
    ensio_add(&name, "-");
    ensio_add(&name, ensio_settings.job);
    ensio_add(&name, "-");
    add_digits(&name, now_s, 0, 8);
    ensio_add(&name, "T");
    add_digits(&name, now_s, 8, 6);
    ensio_add(&name, "Z");
    int placed = current_folder(&path);
    if (!placed)
        placed = ensio_settings.rank >= 0 ? agree_on_folder(&path, &name, now_s) : make_new_folder(&path, &name);
    if (placed || path.full || name.full)
        return placed ? placed : -ENAMETOOLONG;
    return belongs_to_us(ensio_run_directory);
}

/* Another user who can write to the folder that ENSIO_SPOOL names may have made a folder of the run's name. It must
 * therefore belong to this user and be closed to others. */
static int join_spool_directory(void)
{
    struct ensio_string path = ensio_string_in(ensio_spool_directory, sizeof ensio_spool_directory);
    int made = ensio_settings.spool_folder[0] == '/' ? 0 : current_folder(&path);
    ensio_add(&path, ensio_settings.spool_folder);
    if (!made)
        made = path.full ? -ENAMETOOLONG : make_folders(ensio_spool_directory);
    if (made)
        return made;
    uint32_t end = (uint32_t)strlen(ensio_run_directory);
    while (end > 0 && ensio_run_directory[end - 1] == '/')
        end--;
    uint32_t begin = end;
    while (begin > 0 && ensio_run_directory[begin - 1] != '/')
        begin--;
    ensio_add(&path, "/");
    ensio_add_bytes(&path, ensio_run_directory + begin, end - begin);
    if (path.full)
        return -ENAMETOOLONG;
    long laid = ENSIO_RAW(SYS_mkdirat, AT_FDCWD, ensio_spool_directory, 0700);
    struct stat found;
    if (laid && laid != -EEXIST)
        return (int)laid;
    made = belongs_to_us(ensio_spool_directory);
    if (!made && ENSIO_RAW(SYS_newfstatat, AT_FDCWD, ensio_spool_directory, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
        (found.st_mode & 022))
        made = -EPERM;
    return made;
}

int ensio_run_directory_join(void)
{
    int joined = join_run_directory();
    if (joined == 0 && ensio_settings.spool_folder)
        return join_spool_directory();
    memcpy(ensio_spool_directory, ensio_run_directory, sizeof ensio_spool_directory);
    return joined;
}

static struct ensio_string link_to(const char *spool, char *buffer, uint32_t room)
{
    struct ensio_string link = ensio_string_in(buffer, room);
    ensio_add(&link, ensio_run_directory);
    ensio_add(&link, "/");
    ensio_add(&link, ensio_base_name(spool));
    return link;
}

int ensio_run_directory_point_to(const char *spool)
{
    static char buffer[ENSIO_PATH_ROOM];
    if (!ensio_settings.spool_folder)
        return 0;
    struct ensio_string link = link_to(spool, buffer, sizeof buffer);
    return link.full ? -ENAMETOOLONG : (int)ENSIO_RAW(SYS_symlinkat, spool, AT_FDCWD, link.text);
}

void ensio_run_directory_unpoint(const char *spool)
{
    static char buffer[ENSIO_PATH_ROOM];
    if (ensio_settings.spool_folder)
        ENSIO_RAW(SYS_unlinkat, AT_FDCWD, link_to(spool, buffer, sizeof buffer).text, 0);
}
