/* text_queue.h — texts that come while others are spoken: a thread reads them, and what each does to those before it
 * is done at once. */
#ifndef LNT_CLI_SAY_TEXT_QUEUE_H
#define LNT_CLI_SAY_TEXT_QUEUE_H

#include "cli/say/player.h"
#include "cli/say/texts.h"

typedef struct lnt_text_queue lnt_text_queue;

/* Begins to read. Source and player are the queue's until it is stopped. */
lnt_status lnt_text_queue_start(lnt_text_source *source, lnt_player *player, lnt_text_queue **queue,
                                lnt_error *err);
/* Waits for the next text, which stays until the next call; *generation: the player's, of it. *found false: there are
 * no more. What is wrong with a line is said when its turn comes. */
lnt_status lnt_text_queue_next(lnt_text_queue *q, lnt_spoken *to, uint64_t *generation, bool *found,
                               lnt_error *err);
/* Accepts pointers to NULL. True: the source may be closed; else its thread still waits for a line. */
bool lnt_text_queue_stop(lnt_text_queue **queue);

#endif
