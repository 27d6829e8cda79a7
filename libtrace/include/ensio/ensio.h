/* ensio.h: names of phases and regions of a program, for C and C++.
 *
 *     ensio_phase("solve");           begins a phase of this process, which lasts until the next one or to the end
 *     ensio_region_begin("write");    begins a region of this thread; regions nest
 *     ensio_region_end("write");      ends the innermost open region of this name
 *
 * Nothing needs to be linked, and without a recorder the calls do nothing. In C++, `ensio::region here("write");`
 * is a region that lasts to the end of the block. Names are at most 255 bytes long, and a process has room for 2,048.
 *
 * The weak references below bind to a recorder that is linked into the program, or that is preloaded into a
 * position-independent one. Other code, and code that was linked when libc had no dlsym yet, calls dlsym once in each
 * source file.
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

/* Unlike weak declarations, these do not weaken the program's own references to dlsym. */
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

/* A region that lasts to the end of the block. The name must live as long. */
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
