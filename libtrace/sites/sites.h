/* sites.h: call sites: the places in the program that lead to recorded calls. */
#ifndef ENSIO_SITES_SITES_H
#define ENSIO_SITES_SITES_H

#define ENSIO_MOST_CALLERS 32

/* Chooses how many callers a site consists of (ENSIO_CALLPATH; 0: sites are not recorded), and whether sites of a
 * Python program are its lines (ENSIO_PYTHON_LINES). */
void ensio_sites_choose(const char *callers, int python_lines);

/* After a library was unloaded: forgets paths through it, because other code may come to its addresses. */
void ensio_sites_check(void);

#endif
