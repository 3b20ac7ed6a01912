/* clock.h: time that only goes forward, for measuring. */
#ifndef HADAL_BASE_CLOCK_H
#define HADAL_BASE_CLOCK_H

/* Seconds since some fixed moment; only differences mean anything. */
double clock_seconds(void);

#endif
