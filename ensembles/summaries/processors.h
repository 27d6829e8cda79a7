/* Compile loops for several processors. */
#ifndef ENSIO_PROCESSORS_H
#define ENSIO_PROCESSORS_H

/* The build contains a version of each loop for several processors; the loader chooses one. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#endif
