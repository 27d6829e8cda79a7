/* site_settings.h: settings from the environment and the site's file (ensio/site.h), and for whom they are. */
#ifndef ENSIO_CORE_SITE_SETTINGS_H
#define ENSIO_CORE_SITE_SETTINGS_H

#include "bounded_string.h"

/* Reads the file: 0, or -1 after a sentence about what is wrong with it. In ensio_with_private_files. */
int ensio_site_settings_read(void);

/* The value of a setting; NULL: it has none. */
const char *ensio_setting(const char *name);

/* Calls `each` for every setting of the file, "NAME=value". */
void ensio_each_site_setting(void (*each)(const char *setting, void *state), void *state);

/* Adds the name of the user, from /etc/passwd or the environment, or else the number. getpwuid may load libraries and
 * contact servers. In ensio_with_private_files. */
void ensio_add_user(struct ensio_string *string);

/* Whether the site records this program of this user (ENSIO_PROGRAMS, ENSIO_USERS). */
int ensio_is_recorded_here(void);

#endif
