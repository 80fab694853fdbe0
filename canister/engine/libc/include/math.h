/* What compiles to one wasm instruction. The rest of <math.h> comes with icsql_math.h. */
#ifndef ICSQL_LIBC_MATH_H
#define ICSQL_LIBC_MATH_H

#define INFINITY __builtin_inff()

/* Functions, since SQLite takes the address of some. */
static inline double icsql_ceil(double x){ return __builtin_ceil(x); }
static inline double icsql_fabs(double x){ return __builtin_fabs(x); }
static inline double icsql_floor(double x){ return __builtin_floor(x); }
static inline double icsql_sqrt(double x){ return __builtin_sqrt(x); }
static inline double icsql_trunc(double x){ return __builtin_trunc(x); }

#define ceil icsql_ceil
#define fabs icsql_fabs
#define floor icsql_floor
#define sqrt icsql_sqrt
#define trunc icsql_trunc

#endif
