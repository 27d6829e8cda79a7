/* Options of the programs with habits: words such as "size=4096" after the action. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int option_count;
static char **option_words;

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

#endif
