/* requests.h: requests of PnetCDF, from the call that posts one to the call that completes it.
 *
 * The event of a post is stored when the call returns, because its bytes count there. When a wait has completed the
 * request, its flight is stored (files/flights.h). PnetCDF moves the data of a request in the call that completes it,
 * so nothing of the flight is hidden. */
#ifndef ENSIO_LAYERS_NETCDF_REQUESTS_H
#define ENSIO_LAYERS_NETCDF_REQUESTS_H

#include "netcdf.h"

/* A call that completes or cancels requests. */
struct ensio_netcdf_wait {
    uint16_t call;                        /* 0: it cancels them */
    int all;                              /* it names no requests, but a kind of them */
    const int *requests;                  /* of the program; in C, completed ones become null requests */
    struct ensio_netcdf_request *claimed; /* those among them that are known */
};

/* After the event of a call that posted a request. `request`: where the library put its number; NULL: nowhere. */
void ensio_netcdf_posted(struct ensio_thread *thread, const struct ensio_netcdf *netcdf, uint16_t call, int file,
                         const int *request, uint64_t start, uint64_t duration);

/* Before a call on `count` requests of a file, or on all of a kind if `count` is negative. */
struct ensio_netcdf_wait ensio_netcdf_wait_begin(const struct ensio_netcdf *netcdf, uint16_t call, int file, int count,
                                                 const int *requests);

/* After it: stores the flights of the requests that it completed. */
void ensio_netcdf_wait_end(struct ensio_thread *thread, struct ensio_netcdf_wait *wait, int result, uint64_t start,
                           uint64_t duration);

/* A file is closed, so its remaining requests are not waited for. */
void ensio_netcdf_give_up(struct ensio_thread *thread, const struct ensio_netcdf *netcdf, int file);

#endif
