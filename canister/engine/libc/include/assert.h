/* SQLite is compiled with NDEBUG. */
#ifndef assert
#define assert(condition) ((void)0)
#endif
