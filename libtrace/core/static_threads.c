/* static_threads.c: for relinked static programs. Run-time libraries of Fortran and other languages call the thread
 * functions through weak references and test only one of them: if that one is linked in, they call the others as well.
 * The recorder needs that one, so it links in the others. */
#include <pthread.h>
#include <sched.h>

typedef void function(void);

__attribute__((used)) static function *const all_of_threads[] = {
#define BRING(name) (function *)(name)
    BRING(pthread_once),
    BRING(pthread_create),
    BRING(pthread_join),
    BRING(pthread_detach),
    BRING(pthread_cancel),
    BRING(pthread_exit),
    BRING(pthread_self),
    BRING(pthread_equal),
    BRING(pthread_attr_init),
    BRING(pthread_attr_destroy),
    BRING(pthread_attr_setdetachstate),
    BRING(pthread_getschedparam),
    BRING(pthread_setschedparam),
    BRING(pthread_key_create),
    BRING(pthread_key_delete),
    BRING(pthread_getspecific),
    BRING(pthread_setspecific),
    BRING(pthread_mutex_init),
    BRING(pthread_mutex_destroy),
    BRING(pthread_mutex_lock),
    BRING(pthread_mutex_trylock),
    BRING(pthread_mutex_timedlock),
    BRING(pthread_mutex_unlock),
    BRING(pthread_mutexattr_init),
    BRING(pthread_mutexattr_settype),
    BRING(pthread_mutexattr_destroy),
    BRING(pthread_cond_init),
    BRING(pthread_cond_destroy),
    BRING(pthread_cond_wait),
    BRING(pthread_cond_timedwait),
    BRING(pthread_cond_signal),
    BRING(pthread_cond_broadcast),
    BRING(pthread_rwlock_init),
    BRING(pthread_rwlock_destroy),
    BRING(pthread_rwlock_rdlock),
    BRING(pthread_rwlock_tryrdlock),
    BRING(pthread_rwlock_wrlock),
    BRING(pthread_rwlock_trywrlock),
    BRING(pthread_rwlock_unlock),
    BRING(sched_yield),
    BRING(sched_get_priority_max),
    BRING(sched_get_priority_min),
};
