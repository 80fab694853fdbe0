/* The C library of SQLite on wasm32, sized by what the Internet Computer counts: a load or store of up to 16 bytes is 1 instruction,
** memory.copy and memory.fill are 100 and 1 per byte more. A loop of 16-byte moves is cheaper at every length, so this file
** is compiled without the bulk-memory instructions, and so is SQLite.
**
** On wasm32 the functions that compilers call on their own (memcpy, memmove, memset, memcmp, bcmp, strlen) have their usual names, as weak
** symbols: Rust code uses them too, a strong definition elsewhere wins. Natively everything has the prefix icsql_, and
** only tests call it, to compare it with the host's library.
*/
#include <stddef.h>
#include <stdint.h>
#include "icsql_memcmp.h"

#ifdef __wasm__
# define SHARED(name) __attribute__((weak)) name
#else
# define SHARED(name) icsql_##name
#endif

typedef unsigned char v16 __attribute__((vector_size(16)));

static inline v16 load16(const unsigned char *p){
  v16 v;
  __builtin_memcpy(&v, p, 16);
  return v;
}
static inline void store16(unsigned char *p, v16 v){ __builtin_memcpy(p, &v, 16); }
static inline void store8(unsigned char *p, uint64_t v){ __builtin_memcpy(p, &v, 8); }
static inline void store4(unsigned char *p, uint32_t v){ __builtin_memcpy(p, &v, 4); }

/* Up to 64 bytes: everything is loaded before anything is stored, from both ends, with an overlap in the middle. More: blocks of
** 64, and the block at the far end, which was loaded first. So it is right for overlapping ranges, and serves as memcpy too. */
void *SHARED(memmove)(void *to, const void *from, size_t n){
  unsigned char *d = (unsigned char *)to;
  const unsigned char *s = (const unsigned char *)from;
  if( n<=16 ){
    if( n>=8 ){
      uint64_t a = icsql_load8(s), b = icsql_load8(s+n-8);
      store8(d, a);
      store8(d+n-8, b);
    }else if( n>=4 ){
      uint32_t a = icsql_load4(s), b = icsql_load4(s+n-4);
      store4(d, a);
      store4(d+n-4, b);
    }else if( n>0 ){
      unsigned char a = s[0], b = s[n>>1], c = s[n-1];
      d[0] = a;
      d[n>>1] = b;
      d[n-1] = c;
    }
    return to;
  }
  if( n<=32 ){
    v16 a = load16(s), b = load16(s+n-16);
    store16(d, a);
    store16(d+n-16, b);
    return to;
  }
  if( n<=64 ){
    v16 a = load16(s), b = load16(s+16), c = load16(s+n-32), e = load16(s+n-16);
    store16(d, a);
    store16(d+16, b);
    store16(d+n-32, c);
    store16(d+n-16, e);
    return to;
  }
  /* As numbers: true if the destination does not begin inside the source. */
  if( (uintptr_t)d-(uintptr_t)s>=n ){
    unsigned char *end = d+n-64;
    v16 w = load16(s+n-64), x = load16(s+n-48), y = load16(s+n-32), z = load16(s+n-16);
    do{
      v16 a = load16(s), b = load16(s+16), c = load16(s+32), e = load16(s+48);
      store16(d, a);
      store16(d+16, b);
      store16(d+32, c);
      store16(d+48, e);
      d += 64;
      s += 64;
    }while( d<end );
    store16(end, w);
    store16(end+16, x);
    store16(end+32, y);
    store16(end+48, z);
  }else{
    unsigned char *begin = d;
    v16 w = load16(s), x = load16(s+16), y = load16(s+32), z = load16(s+48);
    d += n-64;
    s += n-64;
    do{
      v16 a = load16(s), b = load16(s+16), c = load16(s+32), e = load16(s+48);
      store16(d, a);
      store16(d+16, b);
      store16(d+32, c);
      store16(d+48, e);
      d -= 64;
      s -= 64;
    }while( d>begin );
    store16(begin, w);
    store16(begin+16, x);
    store16(begin+32, y);
    store16(begin+48, z);
  }
  return to;
}

#ifdef __wasm__
void *memcpy(void *, const void *, size_t) __attribute__((weak, alias("memmove")));
#else
void *icsql_memcpy(void *to, const void *from, size_t n){ return icsql_memmove(to, from, n); }
#endif

void *SHARED(memset)(void *to, int value, size_t n){
  unsigned char *d = (unsigned char *)to;
  unsigned char byte = (unsigned char)value;
  uint64_t word = byte * UINT64_C(0x0101010101010101);
  if( n<16 ){
    if( n>=8 ){
      store8(d, word);
      store8(d+n-8, word);
    }else if( n>=4 ){
      store4(d, (uint32_t)word);
      store4(d+n-4, (uint32_t)word);
    }else if( n>0 ){
      d[0] = byte;
      d[n>>1] = byte;
      d[n-1] = byte;
    }
  }else{
    v16 v = {byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte};
    unsigned char *end = d+n-16;
    while( (size_t)(end-d)>=64 ){
      store16(d, v);
      store16(d+16, v);
      store16(d+32, v);
      store16(d+48, v);
      d += 64;
    }
    while( d<end ){
      store16(d, v);
      d += 16;
    }
    store16(end, v);
  }
  return to;
}

int SHARED(memcmp)(const void *left, const void *right, size_t n){ return icsql_inline_memcmp(left, right, n); }

#ifdef __wasm__
int bcmp(const void *, const void *, size_t) __attribute__((weak, alias("memcmp")));
#endif

/* Reads whole aligned words, also around the string: an aligned word never crosses the end of the memory. */
#ifdef __SANITIZE_ADDRESS__
__attribute__((no_sanitize_address))
#endif
size_t SHARED(strlen)(const char *string){
  const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
  size_t skipped = (uintptr_t)string & 7;
  const unsigned char *p = (const unsigned char *)string - skipped;
  /* The bytes in front of the string must not count as zeros. */
  uint64_t word = icsql_load8(p) | ((UINT64_C(1)<<(skipped*8))-1);
  uint64_t zeros;
  while( (zeros = (word-ones) & ~word & highs)==0 ){
    p += 8;
    word = icsql_load8(p);
  }
  /* The lowest mark is exact; marks above a zero byte may not be. */
  return (size_t)(p + (__builtin_ctzll(zeros)>>3) - (const unsigned char *)string);
}

/* The rest is rare in SQLite, and short. */

void *icsql_memchr(const void *memory, int value, size_t n){
  const unsigned char *p = (const unsigned char *)memory;
  for(; n>0; n--, p++){
    if( *p==(unsigned char)value ) return (void *)p;
  }
  return 0;
}

char *icsql_strchr(const char *string, int value){
  for(;; string++){
    if( *string==(char)value ) return (char *)string;
    if( *string==0 ) return 0;
  }
}

char *icsql_strrchr(const char *string, int value){
  const char *found = 0;
  for(;; string++){
    if( *string==(char)value ) found = string;
    if( *string==0 ) return (char *)found;
  }
}

int icsql_strncmp(const char *left, const char *right, size_t n){
  for(; n>0; n--, left++, right++){
    int difference = (int)(unsigned char)*left - (int)(unsigned char)*right;
    if( difference!=0 || *left==0 ) return difference;
  }
  return 0;
}

int icsql_strcmp(const char *left, const char *right){ return icsql_strncmp(left, right, SIZE_MAX); }

/* The number of leading bytes whose membership in `set` is `wanted`. */
static size_t span(const char *string, const char *set, int wanted){
  const char *p = string;
  while( *p!=0 && (icsql_strchr(set, *p)!=0)==wanted ) p++;
  return (size_t)(p-string);
}

size_t icsql_strspn(const char *string, const char *set){ return span(string, set, 1); }
size_t icsql_strcspn(const char *string, const char *set){ return span(string, set, 0); }
