#include "site_settings.h"

#include "globs.h"
#include "private_files.h"
#include "rawsys.h"
#include "settings.h"

#include <ensio/site.h>

#include <stdlib.h>
#include <string.h>

/* The lines that hold settings, one after another. They stay, so that their values may be used at any time. */
static char lines[ENSIO_SITE_FILE_BYTES + 1];
static size_t kept_bytes;

static int is_blank(char character)
{
    return character == ' ' || character == '\t' || character == '\r';
}

/* Where NAME=value begins. */
static const char *setting_of(const char *line)
{
    static const char word[] = "always";
    const size_t length = sizeof word - 1;
    if (strncmp(line, word, length) != 0 || !is_blank(line[length]))
        return line;
    for (line += length; is_blank(*line);)
        line++;
    return line;
}

/* What is wrong with a line; NULL: nothing. */
static const char *problem_of(const char *line, size_t bytes)
{
    const char *const setting = setting_of(line);
    const size_t length = strspn(setting, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    char buffer[64];
    struct ensio_string name = ensio_string_in(buffer, sizeof buffer);
    ensio_add_bytes(&name, setting, (uint32_t)length);
    if (setting[length] != '=' || strlen(line) != bytes ||
        !ensio_word_in(buffer, ENSIO_SITE_NAMES " " ENSIO_SITE_USERS_OWN))
        return " is not a setting of it, such as ENSIO_MODE=profile.\n";
    if (setting != line && ensio_word_in(buffer, ENSIO_SITE_USERS_OWN))
        return " is always, but users have the last word on it.\n";
    return NULL;
}

static int say(const char *path, uint64_t line, const char *problem)
{
    char buffer[400]; /* of the line of ensio_say */
    struct ensio_string before = ensio_string_in(buffer, sizeof buffer);
    ensio_add(&before, "no I/O is recorded, because ");
    if (line) {
        ensio_add(&before, "line ");
        ensio_add_number(&before, line);
        ensio_add(&before, " of ");
    }
    ensio_add(&before, path);
    ensio_say(buffer, "", problem);
    return -1;
}

static int keep_lines(const char *path, size_t bytes)
{
    char *line = lines;
    for (uint64_t number = 1; line < lines + bytes; number++) {
        char *end = memchr(line, '\n', (size_t)(lines + bytes - line)), *const next = end ? end + 1 : lines + bytes;
        end = end ? end : next;
        while (line < end && is_blank(*line))
            line++;
        while (line < end && is_blank(end[-1]))
            end--;
        *end = '\0';
        if (line < end && *line != '#') {
            const char *const problem = problem_of(line, (size_t)(end - line));
            if (problem)
                return say(path, number, problem);
            memmove(lines + kept_bytes, line, (size_t)(end - line) + 1);
            kept_bytes += (size_t)(end - line) + 1;
        }
        line = next;
    }
    return 0;
}

int ensio_site_settings_read(void)
{
    const char *const named = getenv("ENSIO_CONF"), *const path = named ? named : ENSIO_SITE_FILE;
    struct stat found = {0};
    size_t bytes = 0;
    long got = 0;
    if (!*path)
        return 0;
    const int fd = ensio_private_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0); /* a pipe would block */
    if (fd == -ENOENT && !named)
        return 0;
    if (fd < 0)
        return say(path, 0, " cannot be read.\n");
    const long seen = ENSIO_RAW(SYS_newfstatat, fd, "", &found, AT_EMPTY_PATH);
    const int is_safe = !seen && S_ISREG(found.st_mode) && !(found.st_mode & 02) &&
                        (!found.st_uid || found.st_uid == (uid_t)syscall(SYS_geteuid));
    while (is_safe && bytes < sizeof lines && (got = ensio_raw_read(fd, lines + bytes, sizeof lines - bytes)) > 0)
        bytes += (size_t)got;
    ensio_raw_close(fd);
    if (!is_safe)
        return say(path, 0, " is not a file of root or of you that only its owner or group can write.\n");
    if (got < 0 || bytes > ENSIO_SITE_FILE_BYTES)
        return say(path, 0, got < 0 ? " cannot be read.\n" : " is longer than 16 KiB.\n");
    return keep_lines(path, bytes);
}

const char *ensio_setting(const char *name)
{
    const char *const given = getenv(name), *const folder = getenv("ENSIO_DIR");
    const int takes_defaults = !given && (!folder || !*folder);
    const size_t length = strlen(name);
    for (const char *line = lines; line < lines + kept_bytes; line += strlen(line) + 1) {
        const char *const setting = setting_of(line);
        if (strncmp(setting, name, length) == 0 && setting[length] == '=' && (takes_defaults || setting != line))
            return setting + length + 1;
    }
    return given;
}

void ensio_each_site_setting(void (*each)(const char *setting, void *state), void *state)
{
    for (const char *line = lines; line < lines + kept_bytes; line += strlen(line) + 1)
        each(setting_of(line), state);
}

struct user {
    uint64_t id;
    struct ensio_string *name;
};

static int user_line(char *line, void *state)
{
    const struct user *const user = state;
    char *name_end = strchr(line, ':'), *id = name_end ? strchr(name_end + 1, ':') : NULL, *end;
    if (!id || strtoull(id + 1, &end, 10) != user->id || *end != ':' || end == id + 1)
        return 0;
    ensio_add_bytes(user->name, line, (uint32_t)(name_end - line));
    return 1;
}

void ensio_add_user(struct ensio_string *string)
{
    struct user user = {.id = (uint64_t)syscall(SYS_getuid), .name = string};
    const uint32_t before = string->length;
    const char *const said = getenv("USER") ? getenv("USER") : getenv("LOGNAME");
    ensio_private_each_line("/etc/passwd", user_line, &user);
    if (string->length == before && said)
        ensio_add(string, said);
    if (string->length == before)
        ensio_add_number(string, user.id);
}

int ensio_is_recorded_here(void)
{
    const char *const programs = ensio_setting("ENSIO_PROGRAMS"), *const users = ensio_setting("ENSIO_USERS");
    char name[64];
    struct ensio_string user = ensio_string_in(name, sizeof name);
    if (programs && *programs && !ensio_listed(ensio_settings.program, programs))
        return 0;
    if (!users || !*users)
        return 1;
    ensio_add_user(&user);
    return ensio_listed(name, users);
}
