/* One spare buffer, so that tape after tape does not go to malloc and back with tens of kilobytes. Safe without the GIL:
 * the buffer changes hands by one atomic exchange. */
#ifndef CGRAD_RECYCLE_H
#define CGRAD_RECYCLE_H
#include <stdlib.h>
#if defined(_MSC_VER)
#include <windows.h>
#define CGRAD_EXCHANGE(place, value) InterlockedExchangePointer((place), (value))
typedef void *volatile cgrad_spare_t;
#else
#define CGRAD_EXCHANGE(place, value) __atomic_exchange_n((place), (value), __ATOMIC_ACQ_REL)
typedef void *cgrad_spare_t;
#endif

/* The spare buffer (of the one size that is ever spared), or NULL. */
static inline void *cgrad_take_spare(cgrad_spare_t *spare)
{
    return CGRAD_EXCHANGE(spare, NULL);
}

/* Leaves another buffer in the place; returns the one that was there, or NULL. */
static inline void *cgrad_exchange_spare(cgrad_spare_t *spare, void *buffer)
{
    return CGRAD_EXCHANGE(spare, buffer);
}

/* Gives a buffer of that size back; frees what was spared before. */
static inline void cgrad_give_spare(cgrad_spare_t *spare, void *buffer)
{
    free(CGRAD_EXCHANGE(spare, buffer));
}
#endif
