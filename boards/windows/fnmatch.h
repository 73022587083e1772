/* fnmatch.h — names and patterns of * ? and [...]. */
#ifndef LNT_WINDOWS_FNMATCH_H
#define LNT_WINDOWS_FNMATCH_H

/* 0 where the name is of the pattern; flags: none are known. */
int lnt_windows_fnmatch(const char *pattern, const char *name, int flags);
#define fnmatch lnt_windows_fnmatch

#endif
