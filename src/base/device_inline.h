/* device_inline.h: how to declare small functions that kernels of a GPU share with the host. */
#ifndef HADAL_BASE_DEVICE_INLINE_H
#define HADAL_BASE_DEVICE_INLINE_H

#ifdef __CUDACC__
#define DEVICE_INLINE static inline __host__ __device__
#else
#define DEVICE_INLINE static inline
#endif

#endif
