/* requests.h: requests of PnetCDF, from the call that posts one to the call that completes it.
 *
 * PnetCDF moves the data of a request in the call that completes it. So the bytes count there: only then are the event
 * of the post and the flight (files/flights.h) stored, and nothing of the flight is hidden. A request that is
 * cancelled, or left when its file is closed, is an event that moved nothing, and has no flight. */
#ifndef ENSIO_LAYERS_NETCDF_REQUESTS_H
#define ENSIO_LAYERS_NETCDF_REQUESTS_H

#include "netcdf.h"

/* A call that completes or cancels requests. */
struct ensio_netcdf_wait {
    int completes;                        /* 0: it cancels them */
    int all;                              /* it names no requests, but a kind of them */
    const int *requests;                  /* of the program; in C, completed ones become null requests */
    struct ensio_netcdf_request *claimed; /* those among them that are known */
};

/* Ends a call that posted a request, if it returned 0. `request`: where the library put its number; NULL: nowhere. */
int ensio_netcdf_end_post(struct ensio_netcdf_call *call, int result, uint64_t bytes, int file, const int *request);

/* Before a call on `count` requests of a file, or on all of a kind if `count` is negative. The call begins anew. */
struct ensio_netcdf_wait ensio_netcdf_wait_begin(struct ensio_netcdf_call *call, int completes, int file, int count,
                                                 const int *requests);

/* Ends it, and stores the flights of the requests that it completed. */
int ensio_netcdf_end_wait(struct ensio_netcdf_call *call, int result, struct ensio_netcdf_wait *wait);

/* A file is closed: the library drops its remaining requests. */
void ensio_netcdf_give_up(struct ensio_thread *thread, const struct ensio_netcdf *netcdf, int file);

#endif
