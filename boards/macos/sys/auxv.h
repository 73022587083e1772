/* auxv.h — levels of the CPU, in Linux's bits. */
#ifndef LNT_MACOS_AUXV_H
#define LNT_MACOS_AUXV_H

enum { AT_HWCAP, AT_HWCAP2 };
unsigned long lnt_macos_features(int which);
#define getauxval lnt_macos_features

#endif
