/* Types alone: time comes from the VFS, and local time is compiled out. */
#ifndef ICSQL_LIBC_TIME_H
#define ICSQL_LIBC_TIME_H

typedef long long time_t;

struct tm {
  int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst;
};

#endif
