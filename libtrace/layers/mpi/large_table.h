/* large_table.h: wraps the calls of TABLE that have large counts, by LARGE, and leaves out the others. It is included
 * once for each table, which undefines the macros that it uses. */
#define COUNT int64_t
#define EXCHANGE LARGE
#define SYNC(...)
#define UNCOUNTED(...)
#define COMPLETION(...)
#define TEST(...)
#define FINDING(...)
#define OTHER(...)
#ifdef ENSIO_BINDING
#define WINDOW(...) /* in mpi_f08 they have other names */
#else
#define WINDOW LARGE
#endif
#include TABLE
#undef TABLE
