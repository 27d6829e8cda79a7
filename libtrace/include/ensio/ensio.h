/* ensio.h: names for the parts of a program's run, from C and C++.
 *
 *     ensio_phase("solve");           a phase of this process begins; it lasts until the next one, or to the end
 *     ensio_region_begin("write");    a region of this thread begins; regions nest, and may stand in each other
 *     ensio_region_end("write");      the innermost open region of this name ends
 *
 * Nothing needs to be linked for this, and where no recorder is at work nothing happens. In C++, `ensio::region
 * here("write");` is a region to the end of the block. Names are at most 255 bytes long, and a process has room for
 * 2,048 of them.
 *
 * A recorder that is linked into the program, or that was preloaded into one whose code is position-independent, is
 * tied to the weak references below. Other code (and whatever was linked when libc did not have dlsym yet) asks dlsym,
 * once in each source file.
 */
#ifndef ENSIO_ENSIO_H
#define ENSIO_ENSIO_H

#if defined(__GNUC__)
#define ENSIO_INLINE __inline__ __attribute__((unused))
#else
#define ENSIO_INLINE inline
#endif

#define ENSIO_MARK_PHASE 0
#define ENSIO_MARK_REGION_BEGIN 1
#define ENSIO_MARK_REGION_END 2

#if defined(__GNUC__) && defined(__ELF__)

#ifdef __cplusplus
extern "C" {
#endif

typedef void ensio_mark_function(int what, const char *name);

/* Unlike a weak declaration, these leave the program's own use of dlsym as strong as it is. */
static ensio_mark_function ensio_linked_mark __attribute__((weakref("ensio_mark")));
static void *ensio_linked_dlsym(void *handle, const char *symbol) __attribute__((weakref("dlsym")));

static ENSIO_INLINE void ensio_mark_if_recorded(int what, const char *name)
{
    static ensio_mark_function *found;
    static char looked_for;
    ensio_mark_function *mark = ensio_linked_mark;
    if (!mark && !__atomic_load_n(&looked_for, __ATOMIC_ACQUIRE)) {
        union {
            void *object;
            ensio_mark_function *function;
        } symbol = {0};
        if (ensio_linked_dlsym)
            symbol.object = ensio_linked_dlsym((void *)0, "ensio_mark");
        __atomic_store_n(&found, symbol.function, __ATOMIC_RELAXED);
        __atomic_store_n(&looked_for, (char)1, __ATOMIC_RELEASE);
    }
    if (!mark)
        mark = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (mark)
        mark(what, name);
}

#ifdef __cplusplus
}
#endif

#else

static ENSIO_INLINE void ensio_mark_if_recorded(int what, const char *name)
{
    (void)what;
    (void)name;
}

#endif

static ENSIO_INLINE void ensio_phase(const char *name)
{
    ensio_mark_if_recorded(ENSIO_MARK_PHASE, name);
}

static ENSIO_INLINE void ensio_region_begin(const char *name)
{
    ensio_mark_if_recorded(ENSIO_MARK_REGION_BEGIN, name);
}

static ENSIO_INLINE void ensio_region_end(const char *name)
{
    ensio_mark_if_recorded(ENSIO_MARK_REGION_END, name);
}

#ifdef __cplusplus
namespace ensio
{

/* A region from here to the end of the block, however that is left. The name must live as long. */
class region
{
  public:
    explicit region(const char *name) : name_(name)
    {
        ensio_region_begin(name_);
    }
    ~region()
    {
        ensio_region_end(name_);
    }

  private:
    region(const region &); /* not to be copied */
    region &operator=(const region &);
    const char *name_;
};

} // namespace ensio
#endif

#endif
