/* aio.c: requests of asynchronous I/O are passed on and counted. The model does not delay them, and readers of its
 * times must know that there were some. */
#include "process.h"

#include <layers/wrapping.h>

#include <aio.h>

#define SUBMIT(call, symbol, parameters, arguments, bytes, offset) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        const int result = ENSIO_REAL(symbol) arguments; \
        if (result == 0) \
            shim_count_asynchronous(request->aio_fildes); \
        return result; \
    }

#define SUBMIT_LIST(call, reading, writing, symbol) \
    ENSIO_WRAPPER(int, symbol, (int mode, struct aiocb *const list[], int count, struct sigevent *event)) \
    { \
        const int result = ENSIO_REAL(symbol)(mode, list, count, event); \
        for (int i = 0; result == 0 && i < count; i++) \
            if (list[i] && list[i]->aio_lio_opcode != LIO_NOP) \
                shim_count_asynchronous(list[i]->aio_fildes); \
        return result; \
    }

#include <calls/aio.def>

__attribute__((constructor)) static void resolve(void)
{
#undef SYMBOL
#define SYMBOL(symbol) (void)ENSIO_REAL(symbol);
#define ASK(symbol)
#define AWAIT(call, symbol)
#define COLLECT(symbol)
#include <calls/aio.def>
}
