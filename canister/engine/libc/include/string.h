/* The part of <string.h> that SQLite uses. memcmp is inlined here, everything else is in ../libc.c.
**
** The functions that compilers call on their own (memcpy, memmove, memset, memcmp, bcmp, strlen) keep their names, as weak symbols;
** the others get the prefix icsql_, so that they cannot meet another C library in the same program.
*/
#ifndef ICSQL_LIBC_STRING_H
#define ICSQL_LIBC_STRING_H

#include <stddef.h>
#include "../icsql_memcmp.h"

void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
size_t strlen(const char *);

#define memcmp icsql_inline_memcmp

#define memchr icsql_memchr
#define strchr icsql_strchr
#define strcmp icsql_strcmp
#define strcspn icsql_strcspn
#define strncmp icsql_strncmp
#define strrchr icsql_strrchr
#define strspn icsql_strspn

void *memchr(const void *, int, size_t);
char *strchr(const char *, int);
int strcmp(const char *, const char *);
size_t strcspn(const char *, const char *);
int strncmp(const char *, const char *, size_t);
char *strrchr(const char *, int);
size_t strspn(const char *, const char *);

#endif
