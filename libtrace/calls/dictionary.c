#include "calls.h"

#define CALL(number, call, op) #number " " #call " posix " #op "\n"
const char ensio_calls[] =
#include "posix.def"
    ;
