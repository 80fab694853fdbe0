/* memcmp by words of 8 bytes. Inlined, since a key look-up in a b-tree is little else: compared byte by byte it would be
** a quarter of the whole. Little-endian only. */
#ifndef ICSQL_MEMCMP_H
#define ICSQL_MEMCMP_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t icsql_load8(const unsigned char *p){
  uint64_t word;
  __builtin_memcpy(&word, p, 8);
  return word;
}

static inline uint32_t icsql_load4(const unsigned char *p){
  uint32_t word;
  __builtin_memcpy(&word, p, 4);
  return word;
}

static inline int icsql_inline_memcmp(const void *left, const void *right, size_t n){
  const unsigned char *a = (const unsigned char *)left;
  const unsigned char *b = (const unsigned char *)right;
  uint64_t x, y;
  unsigned shift;
  if( n>=8 ){
    /* Whole words, then the last 8 bytes, which may overlap the word before: what overlaps is known to be equal. */
    const unsigned char *last = a + (n-8);
    while( a<last ){
      x = icsql_load8(a);
      y = icsql_load8(b);
      if( x!=y ) goto differ;
      a += 8;
      b += 8;
    }
    b -= a-last;
    x = icsql_load8(last);
    y = icsql_load8(b);
  }else if( n>=4 ){
    x = icsql_load4(a) | (uint64_t)icsql_load4(a+n-4)<<32;
    y = icsql_load4(b) | (uint64_t)icsql_load4(b+n-4)<<32;
  }else if( n>0 ){
    /* Bytes 0, n/2 and n-1 are all there are, in this order, for n = 1, 2 and 3. */
    x = a[0] | (uint64_t)a[n>>1]<<8 | (uint64_t)a[n-1]<<16;
    y = b[0] | (uint64_t)b[n>>1]<<8 | (uint64_t)b[n-1]<<16;
  }else{
    return 0;
  }
  if( x==y ) return 0;
differ:
  /* The first byte that differs is the lowest one. */
  shift = (unsigned)__builtin_ctzll(x^y) & 56;
  return (int)(x>>shift & 0xff) - (int)(y>>shift & 0xff);
}

#endif
