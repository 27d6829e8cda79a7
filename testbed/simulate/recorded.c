#include "recorded.h"

const struct recorded_kind recorded_kinds[RECORDED_COUNT] = {{"unknown", "unknown", "meta", OP_meta},
#define CALL(name, layer, op) {#name, #layer, #op, OP_##op},
                                                             RECORDED_CALLS(CALL)};
