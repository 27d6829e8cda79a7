/* What the programs with habits share: an action, and options, words such as "size=4096" after it. Define _GNU_SOURCE
 * before. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 4096 }; /* as O_DIRECT asks for */

static int option_count;
static char **option_words;
static const char *folder; /* of the run */
static char path[4096];    /* of the file that was named last */

struct action {
    const char *name;
    void (*make)(void);
};

/* The text of an option, or what it is if it is missing. */
static inline const char *text_of(const char *name, const char *otherwise)
{
    const size_t length = strlen(name);
    for (int i = 0; i < option_count; i++)
        if (!strncmp(option_words[i], name, length) && option_words[i][length] == '=')
            return option_words[i] + length + 1;
    return otherwise;
}

/* The number of an option, or what it is if it is missing. */
static inline long number_of(const char *name, long otherwise)
{
    const char *text = text_of(name, NULL);
    return text ? strtol(text, NULL, 10) : otherwise;
}

/* End with a message if something that must succeed has failed. */
static inline void must(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

/* Memory of some bytes, all of which are set. */
static inline char *buffer_of(size_t bytes)
{
    char *buffer = NULL;
    must(!posix_memalign((void **)&buffer, ALIGNED, bytes), "posix_memalign");
    memset(buffer, 7, bytes);
    return buffer;
}

/* Flags of open(2) by their words: "sync", "dsync" and "direct". */
static inline int flags_of(const char *words)
{
    return (strstr(words, "dsync")  ? O_DSYNC
            : strstr(words, "sync") ? O_SYNC
                                    : 0) |
           (strstr(words, "direct") ? O_DIRECT : 0);
}

/* Reads "ACTION FOLDER [OPTION=VALUE ...]"; the action is one of those, or NULL. */
static inline const struct action *action_of(const struct action *actions, size_t count, int argc, char **argv)
{
    if (argc < 3)
        return NULL;
    folder = argv[2];
    option_count = argc - 3;
    option_words = argv + 3;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(argv[1], actions[i].name))
            return &actions[i];
    return NULL;
}

#endif
