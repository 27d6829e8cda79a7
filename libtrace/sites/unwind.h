/* unwind.h: the callers of a stack frame. */
#ifndef ENSIO_SITES_UNWIND_H
#define ENSIO_SITES_UNWIND_H

#include <stddef.h>
#include <stdint.h>

/* Reads memory of this process by a system call, which refuses addresses without memory: 0, or -1. */
int ensio_copy_memory(uintptr_t from, void *to, size_t bytes);

/* A frame on the stack: its caller's return address is the word at `slot`. */
struct ensio_frame {
    uintptr_t address; /* the return address into the frame's function */
    uintptr_t stack;   /* the stack pointer there */
    uintptr_t pointer; /* the frame pointer there */
    uintptr_t slot;    /* where `address` lies */
};

/* Reads a word that may not be there: 0, or minus an errno. */
int ensio_read_word(uintptr_t from, uintptr_t *word);

/* The frame of the caller of a wrapper; `frame`: __builtin_frame_address(0) of the wrapper. */
struct ensio_frame ensio_caller_of(const void *frame);

/* Goes on to the next caller: 0, or -1 if it is unknown. Memory of the stack is read by a system call that refuses
 * addresses without memory, so that no stack, however made, can crash the program. Takes no lock and allocates
 * nothing. */
int ensio_unwind(struct ensio_frame *frame);

#endif
