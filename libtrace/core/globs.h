/* globs.h: lists of globs, separated by colons. '*' matches any characters, including '/', and '?' matches one. */
#ifndef ENSIO_CORE_GLOBS_H
#define ENSIO_CORE_GLOBS_H

/* Matches a path against a list. The first match decides: 1 for a plain glob, 0 for one that begins with '!'; 0 if none
 * matches. */
int ensio_listed(const char *path, const char *globs);

/* Makes a list the one that ensio_excluded matches paths against. The list stays where it is. */
void ensio_exclude(const char *globs);

/* The same as ensio_listed for that list, much faster for a path that no glob matches. */
int ensio_excluded(const char *path);

#endif
