/* SQLite gets its memory from the engine's allocator (SQLITE_ZERO_MALLOC) and converts numbers itself. */
#ifndef ICSQL_LIBC_STDLIB_H
#define ICSQL_LIBC_STDLIB_H

#include <stddef.h>

#endif
