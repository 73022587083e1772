/* player.h — sound that is played by the program aplay: who computes it puts it into a ring of two seconds, and a
 * thread of the player's writes it to the program's pipe. */
#ifndef LNT_CLI_SAY_PLAYER_H
#define LNT_CLI_SAY_PLAYER_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct lnt_player lnt_player;

/* The program is started by the first samples. */
lnt_status lnt_player_create(uint32_t rate, lnt_player **player, lnt_error *err);
/* Adds samples, and waits where the ring is full. LNT_E_CANCELLED without a message: there was an interrupt since the
 * generation, which begins with 0. */
lnt_status lnt_player_put(lnt_player *p, const int16_t *pcm, size_t n, uint64_t generation, lnt_error *err);
/* From any thread: the program is ended at once, and of what was put nothing is heard from now on. Returns the
 * generation of what comes. */
uint64_t lnt_player_interrupt(lnt_player *p);
/* Waits until all is played, and for the program to end; nothing is put from then on. */
lnt_status lnt_player_finish(lnt_player *p, lnt_error *err);
/* Plays no further. Accepts pointers to NULL; sets *player to NULL. */
void lnt_player_destroy(lnt_player **player);

#endif
